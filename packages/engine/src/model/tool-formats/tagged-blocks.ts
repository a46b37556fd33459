import { skipSpace } from './json-object.js';
import type { TextWithCalls, WrittenCall } from './tool-format.js';

const [OPEN, CLOSE] = ['<tool_call>', '</tool_call>'];

/** The call that begins at a place, and the place behind it; undefined if it cannot be read. */
export type CallAt = (text: string, start: number) => { readonly call: WrittenCall; readonly end: number } | undefined;

const CLOSING = /\s*<\/tool_call>\s*/y;

/**
 * Takes the calls out of a response that has each between `<tool_call>` and `</tool_call>`: the content comes before
 * the first, and nothing but white space follows. The tags may also stand in the values of a call.
 */
export function callsInBlocks(text: string, callAt: CallAt): TextWithCalls | undefined {
  const begin = text.indexOf(OPEN);
  if (begin < 0) return { content: text, calls: [] };
  const calls: WrittenCall[] = [];
  for (let at = begin; at < text.length; at = CLOSING.lastIndex) {
    if (!text.startsWith(OPEN, at)) return undefined;
    const found = callAt(text, skipSpace(text, at + OPEN.length));
    CLOSING.lastIndex = found?.end ?? text.length;
    if (found === undefined || !CLOSING.test(text)) return undefined;
    calls.push(found.call);
  }
  return { content: text.slice(0, begin).trimEnd(), calls };
}

export function blocksOf({ content, calls }: TextWithCalls, write: (call: WrittenCall) => string): string {
  const blocks = calls.map((call) => `${OPEN}\n${write(call)}\n${CLOSE}`);
  return [...(content === '' ? [] : [content]), ...blocks].join('\n');
}

export const blockOpening = (inner: string): string => `${OPEN}\n${inner}`;
