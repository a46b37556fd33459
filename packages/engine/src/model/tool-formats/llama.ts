import { callOfJson, jsonOfCall, jsonOpening } from './json-call.js';
import { endOfJson } from './json-object.js';
import type { ToolFormat, WrittenCall } from './tool-format.js';

/** A response that begins so is calls and nothing else. An answer in JSON has other keys. */
const BEGINNING = /^\s*(<\|python_tag\|>\s*)?(?=\{\s*"(name|type)"\s*:)/;
const TAG = '<|python_tag|>';

/** `{"name": ..., "parameters": {...}}` as the whole response, several with `;` between. */
export const llama: ToolFormat = {
  families: 'Llama 3.1, 3.2 and 3.3',
  isOf: (template) => template.includes('ipython') && /"parameters(\\?")?/.test(template),
  read(text) {
    const begin = BEGINNING.exec(text);
    if (begin === null) return text.trimStart().startsWith(TAG) ? undefined : { content: text, calls: [] };
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
