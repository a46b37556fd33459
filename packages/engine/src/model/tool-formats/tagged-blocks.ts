import type { TextWithCalls, WrittenCall } from './tool-format.js';

const [OPEN, CLOSE] = ['<tool_call>', '</tool_call>'];

/**
 * Takes the calls out of a response that has each between `<tool_call>` and `</tool_call>`: the content comes before
 * the first, and nothing but white space follows.
 */
export function callsInBlocks(
  text: string,
  read: (block: string) => WrittenCall | undefined,
): TextWithCalls | undefined {
  const [content = '', ...blocks] = text.split(OPEN);
  const calls = blocks.map((block) => {
    const [inner = '', after] = splitOnce(block, CLOSE);
    return after?.trim() === '' ? read(inner.trim()) : undefined;
  });
  if (calls.includes(undefined)) return undefined;
  return { content: blocks.length === 0 ? text : content.trimEnd(), calls: calls.filter((call) => call !== undefined) };
}

function splitOnce(text: string, by: string): [string, string | undefined] {
  const at = text.indexOf(by);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + by.length)];
}

export function blocksOf({ content, calls }: TextWithCalls, write: (call: WrittenCall) => string): string {
  const blocks = calls.map((call) => `${OPEN}\n${write(call)}\n${CLOSE}`);
  return [...(content === '' ? [] : [content]), ...blocks].join('\n');
}

export const blockOpening = (inner: string): string => `${OPEN}\n${inner}`;
