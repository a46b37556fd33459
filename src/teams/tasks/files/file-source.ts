import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { digestOf } from '@drmas/engine/disk';
import { filePlace, isObject, issuesText, RecipeError, TaskError } from '@drmas/engine/errors';
import type { DataSchema, Split, Task, TaskSet, TaskSource } from '@drmas/engine/nouns';
import { type EntryPlace, nodeFiles } from '@drmas/engine/platform';
import { z } from 'zod';
import { checkedOptions } from '../checked-options.js';
import { isHeldOut } from '../split.js';
import type { FileOptions, JsonlOptions } from '../task-options.js';
import { FILE_FORMATS, type FileFormat, fileRows, formatOf, ROW_NAMES } from './file-rows.js';
import {
  distinctIds,
  type FileRow,
  fieldOf,
  idOf,
  metadataOf,
  shown,
  whatIsMissing,
  withQuestionAndAnswer,
  withTextAnswer,
} from './row-fields.js';

/** A dataset, the folder in it if any, and the start of the file's name. */
const DATASET = /^[\w.-]+\/[\w.-]+(\/[\w./-]+)?:[\w.-]+$/;

const fieldName = z.string().min(1).nullish();

export const rowFields = {
  question: fieldName.describe(
    'The field that holds the question; dots lead into nested objects. If it is not given, drmas tries the fields ' +
      'of the usual collections (`question`, `problem`, the last user message of a `prompt`, ...).',
  ),
  answer: z
    .union([fieldName, z.custom<(row: FileRow) => unknown>((value) => typeof value === 'function')], {
      error: 'expected the name of a field or a function',
    })
    .optional()
    .describe(
      'The field that holds the reference answer, or a function of the row. If it is not given: `answer`, `solution`, ' +
        '`golden_answers`, `reward_model.ground_truth`. In a longer text the part after `####` counts (GSM8K), else the ' +
        'content of the last `\\boxed{...}` (MATH), else the whole text. A list holds several right answers. A task whose ' +
        'answer is null or empty cannot be graded; drmas leaves it out with a warning.',
    ),
  id: fieldName.describe(
    "The field that holds a task's id. If it is not given: `id`, `unique_id`, `_id` or `ID`, else file and line or row. An " +
      "id that repeats gets the row's `data_source` in front, if it has one.",
  ),
  split: fieldName.describe(
    'The field that holds `train` or `test`. Without it and `test` the file is used for the split that it is given for.',
  ),
  metadata: z
    .array(z.string().min(1))
    .readonly()
    .nullish()
    .describe(
      'The fields that evaluations may be divided by. If it is not given: `level`, `difficulty`, `subject`, `type` and ' +
        '`data_source`, if they exist.',
    ),
  test: z
    .number()
    .gt(0)
    .lt(1)
    .nullish()
    .describe('The share of the file that is its test split, chosen by the text of the question.'),
  maxQuestionTokens: z
    .int()
    .positive()
    .nullish()
    .describe(
      'drmas leaves out tasks whose question has more tokens, with a warning. It counts the question as one user message, in ' +
        "the tokenizer and the chat template of the recipe's first model. By default no task is left out.",
    ),
  origin: z
    .string()
    .regex(DATASET, 'expected a dataset and the start of its file, such as HuggingFaceH4/aime_2024:train')
    .nullish()
    .describe(
      'Where the file comes from: a dataset of the Hugging Face hub, a folder in it if needed, and the start of its ' +
        "file's name, such as `HuggingFaceH4/aime_2024:train`. `drmas recipes files` reads it, and so do errors about a " +
        'missing file. drmas downloads nothing.',
    ),
};

const kind = {
  format: z
    .enum(FILE_FORMATS)
    .nullish()
    .describe(
      'The format of the file. If it is not given, the extension decides: `.csv`, `.tsv` and `.parquet`; all others are ' +
        'JSON, an array or one value a line.',
    ),
  delimiter: z
    .string()
    .length(1)
    .nullish()
    .describe('The character between the columns of a CSV file. If it is not given: a comma, in `.tsv` a tab.'),
};

const oneSplit = ({ split, test }: { split?: unknown; test?: unknown }) => split == null || test == null;

export const jsonlSettings = z.strictObject(rowFields).refine(oneSplit, 'split and test cannot both be given');

export const fileSettings = z
  .strictObject({ ...kind, ...rowFields })
  .refine(oneSplit, 'split and test cannot both be given');

/** The data of a task if the team gives no schema. */
export interface QuestionAndAnswer {
  question: string;
  answer: string;
}

/**
 * Reads tasks from a file, one a row: JSON, CSV or Parquet, by its extension. A relative path starts at the working
 * directory (`process.cwd()`). A task's data are the row's fields, with `question` and `answer` according to the
 * options; the team's schema then checks them and drops unknown fields. The file is read row by row; only tasks are
 * kept in memory.
 *
 * @throws RecipeError naming the option that is wrong. Reading happens in `load`, which throws TaskError with file and
 * line.
 *
 * @example
 * ```ts
 * import { file } from 'drmas';
 *
 * const tasks = file('questions.csv', { question: 'problem', answer: 'solution', test: 0.1 });
 * ```
 */
export function file<Data = QuestionAndAnswer>(path: string, options: FileOptions = {}): TaskSource<Data> {
  const checked = checkedOptions('file', fileSettings, options);
  const { format = null, delimiter = null } = checked;
  return sourceOf<Data>('file', path, checked, { format, delimiter }, (other, settings) => file(other, settings));
}

/**
 * Reads tasks from a file of JSON lines or a JSON array, with any extension; otherwise like `file`.
 *
 * @example
 * ```ts
 * import { jsonl } from 'drmas';
 *
 * const tasks = { train: jsonl('train.jsonl'), test: jsonl('test.jsonl') };
 * ```
 */
export function jsonl<Data = QuestionAndAnswer>(path: string, options: JsonlOptions = {}): TaskSource<Data> {
  const json = { ...checkedOptions('jsonl', jsonlSettings, options), format: 'json' } as const;
  return sourceOf<Data>('jsonl', path, json, {}, (other, settings) => jsonl(other, settings));
}

export type FileSourceOptions = z.output<typeof fileSettings>;

function sourceOf<Data>(
  name: string,
  path: string,
  options: FileSourceOptions,
  formatSettings: Readonly<Record<string, unknown>>,
  create: (path: string, settings: JsonlOptions) => TaskSource<Data>,
): TaskSource<Data> {
  if (typeof path !== 'string' || path === '') throw new RecipeError(`${name}: file: expected a path`);
  const { answer, question = null, id = null, split = null, metadata = null, test = null } = options;
  // Undefined settings can be overridden, and recipe.json leaves them out.
  const { maxQuestionTokens = undefined, origin = undefined } = options;
  const named = typeof answer === 'string' ? answer : null;
  return {
    name: basename(path),
    settings: {
      file: path,
      ...formatSettings,
      question,
      answer: named,
      id,
      split,
      metadata,
      test,
      maxQuestionTokens,
      origin,
    },
    configure: ({ file: other, answer: changed, ...rest }) =>
      create(other as string, { ...rest, answer: (changed as string | null | undefined) ?? answer }),
    async load(wanted, schema) {
      if (origin != null && !existsSync(resolve(path)))
        throw new TaskError(
          `cannot be read, because it is not there. It is ${origin} of the Hugging Face hub: ` +
            '`drmas recipes files` lists the files of a recipe and takes them from a folder of downloads',
          { file: path },
        );
      const name = basename(path);
      const tasks = await readTasks(name, [{ path, name }], options, { wanted, schema });
      const { sha256 } = await digestOf(nodeFiles, path);
      return { ...tasks, origins: [{ name: path, files: { [name]: sha256 } }] };
    },
  };
}

interface TaskFile {
  readonly path: string;
  readonly name: string;
}

/**
 * The tasks of files, one a row, as a set with this name.
 * @throws TaskError naming file and row
 */
export async function readTasks<Data>(
  name: string,
  files: readonly [TaskFile, ...TaskFile[]],
  options: FileSourceOptions,
  split: { readonly wanted: Split; readonly schema: DataSchema<Data> | undefined },
): Promise<TaskSet<Data>> {
  const { tasks, questions, warnings } = await tasksOf(files, options, split);
  const { maxQuestionTokens } = options;
  const set = taskSet({ name, file: files[0].path }, tasks, warnings);
  if (maxQuestionTokens == null) return set;
  return {
    ...set,
    fitted: (tokensOf) => fitted(set, tasks, { file: files[0].path, questions, maxQuestionTokens, tokensOf }),
  };
}

function taskSet<Data>(
  { name, file }: { readonly name: string; readonly file: string },
  tasks: readonly Task<Data>[],
  warnings: readonly string[],
): TaskSet<Data> {
  const at = (index: number) => {
    const task = tasks[index];
    if (task === undefined) throw new TaskError(`there is no task ${index} among ${tasks.length}`, { file });
    return task;
  };
  return { name, size: tasks.length, warnings, at };
}

interface QuestionLimit {
  readonly file: string;
  readonly questions: readonly string[];
  readonly maxQuestionTokens: number;
  readonly tokensOf: (question: string) => number;
}

/** The set without the tasks whose question is too long. @throws TaskError if no task is left */
function fitted<Data>(
  { name, warnings = [] }: TaskSet<Data>,
  tasks: readonly Task<Data>[],
  { file, questions, maxQuestionTokens, tokensOf }: QuestionLimit,
): TaskSet<Data> {
  const kept = tasks.filter((_, i) => tokensOf(questions[i] ?? '') <= maxQuestionTokens);
  const long = tasks.length - kept.length;
  if (kept.length === 0)
    throw new TaskError(`all ${long} tasks have a question of more than ${maxQuestionTokens} tokens`, { file });
  if (long === 0) return taskSet({ name, file }, kept, warnings);
  const left = `${file}: ${long} of ${tasks.length} tasks left out, their question has more than ${maxQuestionTokens} tokens`;
  return taskSet({ name, file }, kept, [...warnings, left]);
}

async function tasksOf<Data>(
  files: readonly [TaskFile, ...TaskFile[]],
  options: FileSourceOptions,
  { wanted, schema }: { readonly wanted: Split; readonly schema: DataSchema<Data> | undefined },
): Promise<{ tasks: Task<Data>[]; questions: string[]; warnings: string[] }> {
  const idsSeen = distinctIds();
  const tasks: Task<Data>[] = [];
  const questions: string[] = [];
  let rows = 0;
  const unanswered: string[] = [];
  for (const { path: file, name } of files) {
    const format = options.format ?? formatOf(file);
    for await (const { place, value } of fileRows(file, options)) {
      rows++;
      const where: Where = { file, ...place };
      const read = dataOf(value, options, schema, where, format);
      if (read === undefined) {
        unanswered.push(filePlace(where));
        continue;
      }
      const row = isObject(value) ? value : {};
      const id = idsSeen(idOf(row, options.id), fieldOf(row, 'data_source'), where);
      if (!isOf(wanted, row, options, where)) continue;
      const metadata = metadataOf(row, options.metadata);
      const taskId = id ?? `${name}:${'line' in place ? place.line : place.row}`;
      tasks.push({ id: taskId, data: read.data, ...(metadata && { metadata }) });
      if (options.maxQuestionTokens != null) questions.push(limitedQuestion(row, options, where));
    }
  }
  const file = files[0].path;
  if (rows === 0) throw new TaskError('expected at least one task, the file holds none', { file });
  const left = `${unanswered[0]}: ${unanswered.length} of ${rows} tasks left out, their answer is null or empty`;
  const warnings = unanswered.length === 0 ? [] : [left];
  if (tasks.length === 0)
    throw new TaskError([`expected at least one task of the split '${wanted}'`, ...warnings].join('; '), { file });
  return { tasks, questions, warnings };
}

type Where = EntryPlace & { readonly file: string };

/**
 * Converts a row to a task's data. A numeric answer stays a number if the schema accepts one, else it becomes text.
 * A schema without question and answer does not need them. Returns `undefined` for a blank answer, since such a task
 * cannot be graded.
 */
function dataOf<Data>(
  value: unknown,
  options: FileSourceOptions,
  schema: DataSchema<Data> | undefined,
  where: Where,
  format: FileFormat,
): { data: Data } | undefined {
  const filled = isObject(value) ? withQuestionAndAnswer(value, options) : undefined;
  const answer = filled?.answer;
  if (answer === null || answer === '' || Number.isNaN(answer) || (Array.isArray(answer) && answer.length === 0))
    return undefined;
  const asText = filled && withTextAnswer(filled);
  const checks = schema && filled ? [schema.safeParse(filled), schema.safeParse(asText)] : [];
  for (const checked of checks) if (checked.success) return { data: checked.data };
  const [issues = []] = checks.flatMap((checked) => (checked.success ? [] : [checked.error.issues]));
  // A team with fields of its own gets its schema's words: the usual names would send its author to rename columns.
  const isUsual = issues.every(({ path: [field] }) => field === 'question' || field === 'answer');
  const missing = isUsual ? whatIsMissing(value, options, ROW_NAMES[format]) : undefined;
  if (missing !== undefined) throw new TaskError(missing, where);
  if (issues.length > 0)
    throw new TaskError(`does not fit the team's task: ${issuesText(issues)}, got ${shown(value)}`, where);
  return { data: asText as Data }; // without a schema the caller's type is trusted
}

/** The question whose tokens are counted. @throws TaskError if the row has none */
function limitedQuestion(row: FileRow, { question }: FileSourceOptions, where: Where): string {
  const text = withQuestionAndAnswer(row, { question }).question;
  if (typeof text === 'string') return text;
  throw new TaskError(`maxQuestionTokens needs a question that is a text, got ${shown(row)}`, where);
}

function isOf(wanted: Split, row: FileRow, { question, split, test }: FileSourceOptions, where: Where): boolean {
  if (test != null) {
    const text = withQuestionAndAnswer(row, { question }).question;
    return isHeldOut(typeof text === 'string' ? text : JSON.stringify(row), test) === (wanted === 'test');
  }
  if (split == null) return true;
  const named = fieldOf(row, split);
  if (named !== 'train' && named !== 'test')
    throw new TaskError(`expected "train" or "test" in ${JSON.stringify(split)}, got ${shown(named)}`, where);
  return named === wanted;
}
