import type { Tokenizer } from '../../nouns.js';

export const [THINK, THOUGHT] = ['<think>', '</think>'] as const;

export interface ThoughtOut {
  readonly reasoning?: string;
  readonly rest: string;
}

/** Tokens of a prompt's end that are looked at for the beginning of thinking. */
const LAST_TOKENS = 16;

/**
 * The number of ids before `end` with which a prompt begins the thinking, as some templates do; 0 if it does not.
 */
export function thinkingBegun(
  tokenizer: Pick<Tokenizer, 'decode'>,
  prompt: readonly number[],
  end = prompt.length,
): number {
  const begins = (count: number) =>
    tokenizer
      .decode(prompt.slice(Math.max(0, end - count), end))
      .trimEnd()
      .endsWith(THINK);
  if (!begins(LAST_TOKENS)) return 0;
  let count = 1;
  while (!begins(count)) count++;
  return count;
}

/** Whether a prompt's ids before `end` end with the beginning of thinking. */
export const opensThinking = (...prompt: Parameters<typeof thinkingBegun>): boolean => thinkingBegun(...prompt) > 0;

/**
 * Takes the thinking off the beginning of a response. Templates that open the thinking themselves leave only its end
 * in the response. If the response was cut off while the model thought, nothing is left.
 * @param opened Whether the prompt ends with the beginning of thinking. Undefined: unknown, so that an end without a
 *   beginning counts as thinking
 */
export function withoutThinking(text: string, opened?: boolean): ThoughtOut {
  const begins = text.trimStart().startsWith(THINK);
  const end = begins || opened !== false ? text.indexOf(THOUGHT) : -1;
  if (end < 0 && !begins && opened !== true) return { rest: text };
  const thought = end < 0 ? text : text.slice(0, end);
  const rest = end < 0 ? '' : text.slice(end + THOUGHT.length).trimStart();
  const reasoning = (begins ? thought.trimStart().slice(THINK.length) : thought).trim();
  return { ...(reasoning === '' ? {} : { reasoning }), rest };
}
