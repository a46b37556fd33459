/** Questions, answers and ids in rows of files, where the public collections of tasks have them. */

import { excerpt } from '../../core/format.js';
import { isObject } from '../../core/objects.js';
import { extractBoxed } from '../grading/boxed.js';

/** One row of a task file. */
export type FileRow = Readonly<Record<string, unknown>>;

/** Where question and answer of a row are; what is not given is looked for under the usual names. */
export interface FieldMapping {
  readonly question?: string | null | undefined;
  readonly answer?: string | null | ((row: FileRow) => unknown) | undefined;
}

/**
 * In the order in which they are tried. `problem`, `solution`, `unique_id`: MATH. Capitals: AIME as Maxwell-Jia has it.
 * `golden_answers`: NQ and HotpotQA as FlashRAG and Search-R1 have them. `prompt`, `reward_model`: verl's layout, as of DAPO;
 * there `extra_info.question` is the question without the instructions around it. `_id`: HotpotQA.
 */
const usualNames = {
  question: ['question', 'problem', 'Question', 'Problem', 'extra_info.question', 'prompt'],
  answer: [
    'answer',
    'solution',
    'Answer',
    'Solution',
    'golden_answers',
    'reward_model.ground_truth.target',
    'reward_model.ground_truth',
  ],
  id: ['id', 'unique_id', '_id', 'ID'],
};

/** What a task is known by beside its question; kept where no other fields are asked for. */
const usualMetadata = ['level', 'difficulty', 'subject', 'type', 'data_source'];

/**
 * The row with `question` and `answer` filled in, as far as it has them. Of a conversation the last user message is the
 * question. A numeric answer stays a number; a list of one answer becomes that answer.
 */
export function withQuestionAndAnswer(row: FileRow, mapping: FieldMapping): FileRow {
  const { question, answer, ...others } = row;
  const asked = firstOf(row, mapping.question, usualNames.question);
  const found =
    typeof mapping.answer === 'function' ? mapping.answer(row) : firstOf(row, mapping.answer, usualNames.answer);
  return {
    ...others,
    ...(asked !== undefined && { question: questionOf(asked) }),
    ...(found !== undefined && { answer: answerOf(found) }),
  };
}

/** The row with a numeric answer as text. */
export function withTextAnswer(row: FileRow): FileRow {
  return typeof row.answer === 'number' ? { ...row, answer: String(row.answer) } : row;
}

/** What a row lacks of a question and an answer, as an error message; `undefined` when it has both. */
export function whatIsMissing(row: unknown, mapping: FieldMapping, rowName: string): string | undefined {
  const quoted = (name: string | null | undefined, usual: readonly string[]) =>
    (name == null ? usual.slice(0, 2) : [name]).map((each) => JSON.stringify(each)).join(' or ');
  const question = `${rowName} with a string ${quoted(mapping.question, usualNames.question)}`;
  if (!isObject(row)) return `expected ${question}, got ${shown(row)}`;
  const filled = withQuestionAndAnswer(row, mapping);
  if (typeof filled.question !== 'string') return `expected ${question}, got ${shown(row)}`;
  if (isAnswer(filled.answer) || (Array.isArray(filled.answer) && filled.answer.every(isAnswer))) return undefined;
  const answer =
    typeof mapping.answer === 'function'
      ? 'the answer function to return a string or a number'
      : `a string or number ${quoted(mapping.answer, usualNames.answer)}`;
  return `expected ${answer}, got ${shown(row)}`;
}

const isAnswer = (value: unknown) => typeof value === 'string' || typeof value === 'number';

/** The row's own id, where it has one. */
export function idOf(row: FileRow, name: string | null | undefined): string | undefined {
  const id = firstOf(row, name, usualNames.id);
  return typeof id === 'string' || typeof id === 'number' ? String(id) : undefined;
}

/** The fields that a task is to be known by: those named, or the usual ones, also those of an object `metadata`. */
export function metadataOf(
  row: FileRow,
  names: readonly string[] | null | undefined,
): Record<string, unknown> | undefined {
  const found = (names ?? usualMetadata).flatMap((name) => {
    const value = fieldOf(row, name) ?? (names == null ? fieldOf(row, `metadata.${name}`) : undefined);
    return isAnswer(value) || typeof value === 'boolean' ? [[name, value] as const] : [];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

/** A field by name; where no field is called `a.b`, the field `b` of the object `a`. */
export function fieldOf(row: unknown, name: string): unknown {
  if (!isObject(row)) return undefined;
  if (Object.hasOwn(row, name)) return row[name];
  const dot = name.indexOf('.');
  const outer = name.slice(0, dot);
  return dot > 0 && Object.hasOwn(row, outer) ? fieldOf(row[outer], name.slice(dot + 1)) : undefined;
}

function firstOf(row: FileRow, name: string | null | undefined, usual: readonly string[]): unknown {
  if (name != null) return fieldOf(row, name);
  return usual.map((each) => fieldOf(row, each)).find((value) => value !== undefined);
}

function questionOf(asked: unknown): unknown {
  const messages = Array.isArray(asked) ? asked.filter((message) => fieldOf(message, 'role') === 'user') : [];
  const text = messages.length > 0 ? fieldOf(messages.at(-1), 'content') : asked;
  return typeof text === 'string' ? withoutInstructions(text) : text;
}

/** DAPO wraps every problem in the same instructions; a team has its own. */
function withoutInstructions(text: string): string {
  const wrapped =
    /^Solve the following math problem step by step\. The last line of your response should be of the form Answer: [^\n]*\n\n([\s\S]*?)\n\nRemember to put your answer on its own line after "Answer:"\.\s*$/;
  return wrapped.exec(text)?.[1] ?? text;
}

function answerOf(found: unknown): unknown {
  if (typeof found === 'string') return finalAnswer(found);
  if (!Array.isArray(found)) return found;
  return found.length === 1 ? answerOf(found[0]) : found;
}

/** What follows the last `####` of a worked solution (GSM8K), else its last `\boxed{...}` (MATH), else the whole text. */
function finalAnswer(text: string): string {
  const marker = text.lastIndexOf('####');
  const answer = marker >= 0 ? text.slice(marker + 4) : (extractBoxed(text) ?? text);
  return answer.trim();
}

/** A value from a file, for an error message. */
export const shown = (value: unknown): string => (value === undefined ? 'nothing' : excerpt(JSON.stringify(value)));
