import { jsonValue } from '../../errors.js';
import type { Tool } from '../../nouns.js';
import { callOfJson, jsonOfCall, jsonOpening } from './json-call.js';
import { endOfJson, jsonMembers } from './json-object.js';
import type { ToolFormat, WrittenCall } from './tool-format.js';

/** A response that begins so is calls and nothing else, or an answer in JSON. */
const BEGINNING = /^\s*(<\|python_tag\|>\s*)?(?=\{\s*"(name|type)"\s*:)/;
const TAG = '<|python_tag|>';

/** `{"name": ..., "parameters": {...}}` as the whole response, several with `;` between. */
export const llama: ToolFormat = {
  families: 'Llama 3.1, 3.2 and 3.3',
  isOf: (template) => template.includes('ipython') && /"parameters(\\?")?/.test(template),
  read(text, tools) {
    const begin = BEGINNING.exec(text);
    if (begin === null) return text.trimStart().startsWith(TAG) ? undefined : { content: text, calls: [] };
    if (begin[1] === undefined && isAnswer(text, tools)) return { content: text, calls: [] };
    const calls: WrittenCall[] = [];
    for (let at = begin[0].length; ; ) {
      const end = endOfJson(text, at);
      const call =
        end === undefined ? undefined : callOfJson(text.slice(at, end), ['parameters', 'arguments'], ['type']);
      if (end === undefined || call === undefined) return undefined;
      calls.push(call);
      const rest = text.slice(end);
      if (rest.trim() === '') return { content: '', calls };
      const separator = /^\s*;\s*(?=\{)/.exec(rest);
      if (separator === null) return undefined;
      at = end + separator[0].length;
    }
  },
  write: ({ content, calls }) =>
    calls.length === 0 ? content : calls.map((call) => jsonOfCall(call, 'parameters')).join('; '),
  opening: (name) => jsonOpening(name, 'parameters'),
};

/** Whether an object is an answer: it has no arguments, and is not named as a tool is, which may lack them. */
function isAnswer(text: string, tools: readonly Tool[]): boolean {
  const members = jsonMembers(text);
  if (members === undefined || members.has('parameters') || members.has('arguments')) return false;
  const name = jsonValue(members.get('name') ?? '');
  return tools.every((tool) => tool.name !== name);
}
