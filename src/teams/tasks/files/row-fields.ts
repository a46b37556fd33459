/** Finds questions, answers and ids in the rows of files, under the names that public collections of tasks use. */

import { type FilePlace, isObject, TaskError } from '@drmas/engine/errors';
import { excerpt } from '@drmas/engine/host';
import { extractBoxed } from '../grading/boxed.js';

/** One row of a task file. */
export type FileRow = Readonly<Record<string, unknown>>;

/** The fields of a row's question and answer; a field that is not given is looked up under the usual names. */
export interface FieldMapping {
  readonly question?: string | null | undefined;
  readonly answer?: string | null | ((row: FileRow) => unknown) | undefined;
}

/**
 * The usual names in the order in which they are tried. `problem`, `solution`, `unique_id` come from MATH; capitals
 * from Maxwell-Jia's AIME; `golden_answers` from NQ and HotpotQA in FlashRAG and Search-R1; `prompt`, `reward_model`
 * from verl's layout (DAPO), whose `extra_info.question` is the question without the instructions around it; `_id` from
 * HotpotQA.
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

const usualMetadata = ['level', 'difficulty', 'subject', 'type', 'data_source'];

/**
 * The row with `question` and `answer` filled in, as far as it has them. The question of a conversation is its last
 * user message. A numeric answer stays a number; a list of one answer becomes that answer.
 */
export function withQuestionAndAnswer(row: FileRow, mapping: FieldMapping): FileRow {
  const { question, answer, ...others } = row;
  const questionField = firstOf(row, mapping.question, usualNames.question);
  const answerField =
    typeof mapping.answer === 'function' ? mapping.answer(row) : firstOf(row, mapping.answer, usualNames.answer);
  return {
    ...others,
    ...(questionField !== undefined && { question: questionOf(questionField) }),
    ...(answerField !== undefined && { answer: answerOf(answerField) }),
  };
}

export function withTextAnswer(row: FileRow): FileRow {
  return typeof row.answer === 'number' ? { ...row, answer: String(row.answer) } : row;
}

/** An error message about a row without question or answer; `undefined` when it has both. */
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

export function idOf(row: FileRow, name: string | null | undefined): string | undefined {
  const id = firstOf(row, name, usualNames.id);
  return typeof id === 'string' || typeof id === 'number' ? String(id) : undefined;
}

/**
 * Makes ids distinct. If another collection has taken a row's id, the id begins with the name of the row's collection,
 * its `data_source`: files that join collections, such as NQ and HotpotQA, number each of them from `train_0`.
 */
export function distinctIds() {
  const places = new Map<string, FilePlace>();
  const owners = new Map<string, unknown>();
  /** @throws TaskError if the id repeats within a collection */
  return (id: string | undefined, source: unknown, where: FilePlace): string | undefined => {
    if (id === undefined) return undefined;
    const isOthers = typeof source === 'string' && owners.has(id) && owners.get(id) !== source;
    const unique = isOthers ? `${source}/${id}` : id;
    const before = places.get(unique);
    if (before !== undefined)
      throw new TaskError(
        `the id '${unique}' is already used in ${before.line === undefined ? `row ${before.row}` : `line ${before.line}`}`,
        where,
      );
    places.set(unique, where);
    if (!isOthers) owners.set(id, source);
    return unique;
  };
}

/** The task's metadata: the named fields, or the usual fields of the row and of its object `metadata`. */
export function metadataOf(
  row: FileRow,
  names: readonly string[] | null | undefined,
): Record<string, unknown> | undefined {
  const entries = (names ?? usualMetadata).flatMap((name) => {
    const value = fieldOf(row, name) ?? (names == null ? fieldOf(row, `metadata.${name}`) : undefined);
    return isAnswer(value) || typeof value === 'boolean' ? [[name, value] as const] : [];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** A field by name. If the row has no field `a.b`, this is the field `b` of the object `a`. */
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

function questionOf(value: unknown): unknown {
  const messages = Array.isArray(value) ? value.filter((message) => fieldOf(message, 'role') === 'user') : [];
  const text = messages.length > 0 ? fieldOf(messages.at(-1), 'content') : value;
  return typeof text === 'string' ? withoutInstructions(text) : text;
}

/**
 * The problem without the instructions that files of DAPO's problems wrap around it (verl's layout) or append to it
 * (`aaabiao/dapo_filter`), since a team brings its own. The second pattern accepts all spellings that the
 * preprocessing of the Dr. MAS paper's code accepts.
 */
function withoutInstructions(text: string): string {
  const wrapped =
    /^Solve the following math problem step by step\. The last line of your response should be of the form Answer: [^\n]*\n\n([\s\S]*?)\n\nRemember to put your answer on its own line after "Answer:"\.\s*$/;
  const appended =
    /(\\n|\s)*Let['\u2019]?s\s+think\s+step\s+by\s+step\s+and\s+output\s+the\s+final\s+answer\s+within\s*\\boxed\{\}\.?\s*$/i;
  return wrapped.exec(text)?.[1] ?? text.replace(appended, '');
}

function answerOf(value: unknown): unknown {
  if (typeof value === 'string') return finalAnswer(value);
  if (!Array.isArray(value)) return value;
  return value.length === 1 ? answerOf(value[0]) : value;
}

/** A box that has no brace after `\boxed`, or that is an `\fbox`, as in `$\boxed 7$`; and what follows its name. */
const OTHER_BOX = /\\(?:boxed\s+|fbox\s*)/g;
const IN_OTHER_BOX = /^(?:\{([^{}]*)\}|([^${}\s][^$]*(?=\$)|[^${}\s]+))/;

/**
 * The text after the last `####` of a worked solution (GSM8K), else its last `\boxed{...}` (MATH), else the whole text.
 * Solutions that people wrote have other boxes too; a model's answer has none of these.
 */
function finalAnswer(text: string): string {
  const marker = text.lastIndexOf('####');
  if (marker >= 0) return text.slice(marker + 4).trim();
  const last = [...text.matchAll(OTHER_BOX)].at(-1);
  const [, braced, bare] = (last && IN_OTHER_BOX.exec(text.slice(last.index + last[0].length))) ?? [];
  return (extractBoxed(text) ?? braced ?? bare ?? text).trim();
}

export const shown = (value: unknown): string => (value === undefined ? 'nothing' : excerpt(JSON.stringify(value)));
