const [OPEN, CLOSE] = ['<think>', '</think>'];

/** A response without its thinking. */
export interface ThoughtOut {
  readonly reasoning?: string;
  readonly rest: string;
}

/**
 * Takes the thinking off the beginning of a response. Templates that open the thinking themselves leave only its end
 * in the response. If the response was cut off while the model thought, nothing is left.
 */
export function withoutThinking(text: string): ThoughtOut {
  const end = text.indexOf(CLOSE);
  const begins = text.trimStart().startsWith(OPEN);
  if (end < 0 && !begins) return { rest: text };
  const thought = end < 0 ? text : text.slice(0, end);
  const rest = end < 0 ? '' : text.slice(end + CLOSE.length).trimStart();
  const reasoning = (begins ? thought.trimStart().slice(OPEN.length) : thought).trim();
  return { ...(reasoning === '' ? {} : { reasoning }), rest };
}
