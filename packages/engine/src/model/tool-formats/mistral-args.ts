import { jsonObject } from '../../errors.js';
import { endOfJson } from './json-object.js';
import type { ToolFormat, WrittenCall } from './tool-format.js';

const [TAG, ARGS] = ['[TOOL_CALLS]', '[ARGS]'];

/** The name of a call, with the id that some of these models write behind it. */
const HEAD = /\[TOOL_CALLS\]\s*([^\s[\]{}]+)(?:\[CALL_ID\]\w*)?\[ARGS\]\s*/y;
const SPACE = /\s*/y;

/** `[TOOL_CALLS]name[ARGS]{...}`, any number of times, at the end of the response. */
export const mistralArgs: ToolFormat = {
  families: 'Mistral Small 3.2, Magistral, Devstral, Ministral 3',
  isOf: (template) => template.includes(TAG) && template.includes(ARGS),
  read(text) {
    const begin = text.indexOf(TAG);
    if (begin < 0) return { content: text, calls: [] };
    const calls: WrittenCall[] = [];
    for (let at = begin; at < text.length; ) {
      HEAD.lastIndex = at;
      const name = HEAD.exec(text)?.[1];
      const start = HEAD.lastIndex;
      const end = name === undefined || text.charAt(start) !== '{' ? undefined : endOfJson(text, start);
      if (name === undefined || end === undefined || jsonObject(text.slice(start, end)) === undefined) return undefined;
      calls.push({ name, arguments: text.slice(start, end) });
      SPACE.lastIndex = end;
      SPACE.test(text);
      at = SPACE.lastIndex;
    }
    return { content: text.slice(0, begin).trimEnd(), calls };
  },
  write: ({ content, calls }) =>
    content + calls.map(({ name, arguments: values }) => `${TAG}${name}${ARGS}${values}`).join(''),
  opening: (name = '') => TAG + name, // an id or the arguments may follow the name
};
