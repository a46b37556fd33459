import { jsonValue } from '../../errors.js';
import { callOfJson, jsonOfCall, jsonOpening } from './json-call.js';
import { endOfJson } from './json-object.js';
import type { ToolFormat, WrittenCall } from './tool-format.js';

const TAG = '[TOOL_CALLS]';

/** `[TOOL_CALLS] [{"name": ..., "arguments": {...}}, ...]` at the end of the response. */
export const mistral: ToolFormat = {
  families: 'Mistral 7B v0.3, Mistral Nemo, Mistral Large 2407',
  isOf: (template) => template.includes(TAG) && !template.includes('[ARGS]'),
  read(text) {
    const at = text.indexOf(TAG);
    if (at < 0) return { content: text, calls: [] };
    const calls = callsOfList(text.slice(at + TAG.length).trim());
    return calls && { content: text.slice(0, at).trimEnd(), calls };
  },
  write: ({ content, calls }) =>
    calls.length === 0
      ? content
      : `${content}${TAG} [${calls.map((call) => jsonOfCall(call, 'arguments')).join(', ')}]`,
  opening: (name) => `${TAG} [${jsonOpening(name, 'arguments')}`,
};

function callsOfList(text: string): WrittenCall[] | undefined {
  const list = jsonValue(text);
  if (!Array.isArray(list) || list.length === 0) return undefined;
  const calls: WrittenCall[] = [];
  let at = text.indexOf('{');
  for (const _ of list) {
    const end = at < 0 ? undefined : endOfJson(text, at);
    const call = end === undefined ? undefined : callOfJson(text.slice(at, end), ['arguments'], ['id']);
    if (end === undefined || call === undefined) return undefined;
    calls.push(call);
    at = text.indexOf('{', end);
  }
  return calls;
}
