import type { Tokenizer } from '../../nouns.js';

/** The marks around thinking: of most models; of Magistral and of Ministral's models that reason. */
export const THINKING = [
  ['<think>', '</think>'],
  ['[THINK]', '[/THINK]'],
] as const;
const [BEGINNINGS, ENDS] = [THINKING.map(([begin]) => begin), THINKING.map(([, end]) => end)];

/** The marks that may end the thinking of a text. If the text begins with a mark, only the end of this kind may. */
export function endsOfThinking(text: string): readonly string[] {
  const own = THINKING.find(([begin]) => text.trimStart().startsWith(begin));
  return own === undefined ? ENDS : [own[1]];
}

/** The place of the first of these marks in a text, and the place behind it. */
export function firstMark(text: string, marks: readonly string[]) {
  const found = marks.map((mark) => ({ at: text.indexOf(mark), mark })).filter(({ at }) => at >= 0);
  const [first] = found.sort((one, other) => one.at - other.at);
  return first && { at: first.at, behind: first.at + first.mark.length };
}

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
  const begins = (count: number) => {
    const text = tokenizer.decode(prompt.slice(Math.max(0, end - count), end)).trimEnd();
    return BEGINNINGS.some((mark) => text.endsWith(mark));
  };
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
  const start = text.trimStart();
  const begun = BEGINNINGS.find((mark) => start.startsWith(mark));
  const end = begun !== undefined || opened !== false ? firstMark(text, endsOfThinking(text)) : undefined;
  if (end === undefined && begun === undefined && opened !== true) return { rest: text };
  const thought = end === undefined ? text : text.slice(0, end.at);
  const rest = end === undefined ? '' : text.slice(end.behind).trimStart();
  const reasoning = (begun === undefined ? thought : thought.trimStart().slice(begun.length)).trim();
  return { ...(reasoning === '' ? {} : { reasoning }), rest };
}
