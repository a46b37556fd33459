import { extractBoxed } from './grading/boxed.js';
import { excerpt } from './json-rows.js';

/** One object of a task file. */
export type JsonRow = Readonly<Record<string, unknown>>;

/** Where question and answer of a row are; what is not given is looked for under the usual names. */
export interface FieldMapping {
  readonly question?: string | null | undefined;
  readonly answer?: string | null | ((row: JsonRow) => unknown) | undefined;
}

const usualNames = { question: ['question', 'problem'], answer: ['answer', 'solution'], id: ['id', 'unique_id'] };

/** The row with `question` and `answer` filled in, as far as it has them; a numeric answer stays a number. */
export function withQuestionAndAnswer(row: JsonRow, mapping: FieldMapping): JsonRow {
  const { question, answer, ...others } = row;
  const asked = firstOf(row, mapping.question, usualNames.question);
  const found =
    typeof mapping.answer === 'function' ? mapping.answer(row) : firstOf(row, mapping.answer, usualNames.answer);
  return {
    ...others,
    ...(asked !== undefined && { question: asked }),
    ...(found !== undefined && { answer: typeof found === 'string' ? finalAnswer(found) : found }),
  };
}

/** The row with a numeric answer as text. */
export function withTextAnswer(row: JsonRow): JsonRow {
  return typeof row.answer === 'number' ? { ...row, answer: String(row.answer) } : row;
}

/** What a row lacks of a question and an answer, as an error message; `undefined` when it has both. */
export function whatIsMissing(row: unknown, mapping: FieldMapping): string | undefined {
  const quoted = (name: string | null | undefined, usual: readonly string[]) =>
    (name == null ? usual : [name]).map((each) => JSON.stringify(each)).join(' or ');
  const question = `a JSON object with a string ${quoted(mapping.question, usualNames.question)}`;
  if (!isObject(row)) return `expected ${question}, got ${shown(row)}`;
  const filled = withQuestionAndAnswer(row, mapping);
  if (typeof filled.question !== 'string') return `expected ${question}, got ${shown(row)}`;
  if (typeof filled.answer === 'string' || typeof filled.answer === 'number') return undefined;
  const answer =
    typeof mapping.answer === 'function'
      ? 'the answer function to return a string or a number'
      : `a string or number ${quoted(mapping.answer, usualNames.answer)}`;
  return `expected ${answer}, got ${shown(row)}`;
}

/** The row's own id, where it has one. */
export function idOf(row: JsonRow, name: string | null | undefined): string | undefined {
  const id = firstOf(row, name, usualNames.id);
  return typeof id === 'string' || typeof id === 'number' ? String(id) : undefined;
}

/** A field by name; where no field is called `a.b`, the field `b` of the object `a`. */
export function fieldOf(row: unknown, name: string): unknown {
  if (!isObject(row)) return undefined;
  if (Object.hasOwn(row, name)) return row[name];
  const dot = name.indexOf('.');
  const outer = name.slice(0, dot);
  return dot > 0 && Object.hasOwn(row, outer) ? fieldOf(row[outer], name.slice(dot + 1)) : undefined;
}

function firstOf(row: JsonRow, name: string | null | undefined, usual: readonly string[]): unknown {
  if (name != null) return fieldOf(row, name);
  return usual.map((each) => fieldOf(row, each)).find((value) => value !== undefined);
}

/** What follows the last `####` of a worked solution (GSM8K), else its last `\boxed{...}` (MATH), else the whole text. */
function finalAnswer(text: string): string {
  const marker = text.lastIndexOf('####');
  const answer = marker >= 0 ? text.slice(marker + 4) : (extractBoxed(text) ?? text);
  return answer.trim();
}

export function isObject(value: unknown): value is JsonRow {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value from a file, for an error message. */
export const shown = (value: unknown): string => (value === undefined ? 'nothing' : excerpt(JSON.stringify(value)));
