import { basename } from 'node:path';
import { z } from 'zod';
import { RecipeError, TaskError } from '../core/errors.js';
import { issuesText } from '../core/issues.js';
import type { DataSchema, Split, Task, TaskSource } from '../core/task.js';
import {
  fieldOf,
  idOf,
  isObject,
  type JsonRow,
  shown,
  whatIsMissing,
  withQuestionAndAnswer,
  withTextAnswer,
} from './json-fields.js';
import { jsonRows } from './json-rows.js';
import { isHeldOut } from './split.js';
import { readTextFile } from './text-file.js';

const fieldName = z.string().min(1).nullish();

const optionsSchema = z
  .strictObject({
    /** Field that holds the question. Default: `question`, or `problem` as in MATH. Dots lead into nested objects. */
    question: fieldName,
    /**
     * Field that holds the reference answer, or a function of the row. Default: `answer`, or `solution`. Of a longer text
     * what follows `####` counts (GSM8K), else the content of the last `\boxed{...}` (MATH), else the whole. A task whose
     * answer is null or empty cannot be graded and is left out, with a warning.
     */
    answer: z
      .union([fieldName, z.custom<(row: JsonRow) => unknown>((value) => typeof value === 'function')], {
        error: 'expected the name of a field or a function',
      })
      .optional(),
    /** Field that holds a task's id. Default: `id` or `unique_id`, else file and line. */
    id: fieldName,
    /** Field that holds `train` or `test`. Without it and `test` the file serves whichever split it is given for. */
    split: fieldName,
    /** Share of the file that is its test split, chosen by the text of the question. */
    test: z.number().gt(0).lt(1).nullish(),
  })
  .refine(({ split, test }) => split == null || test == null, 'split and test cannot both be given');

export type JsonlOptions = z.input<typeof optionsSchema>;

/**
 * Tasks from a file of JSON lines or a JSON array, one object a task. A relative path starts at the working directory
 * (`process.cwd()`). A task's data are the row's fields with `question` and `answer` as found by the options; the team's
 * schema then checks them and drops what it does not know.
 *
 * @throws RecipeError naming the option that is wrong. Reading happens in `load`, which throws TaskError with file and line.
 */
export function jsonl<Data = { question: string; answer: string }>(
  file: string,
  options: JsonlOptions = {},
): TaskSource<Data> {
  const checked = optionsSchema.safeParse(options);
  if (!checked.success) throw new RecipeError(`jsonl: ${issuesText(checked.error.issues)}`);
  if (typeof file !== 'string' || file === '') throw new RecipeError('jsonl: file: expected a path');
  const { answer, question = null, id = null, split = null, test = null } = checked.data;
  const plain = { question, answer: typeof answer === 'string' ? answer : null, id, split, test };
  return {
    name: basename(file),
    settings: { file, ...plain },
    configure: ({ file: other, answer: named, ...rest }) =>
      jsonl<Data>(other as string, {
        ...(rest as JsonlOptions),
        answer: (named as string | null | undefined) ?? answer,
      }),
    async load(wanted, schema) {
      const { tasks, warnings } = await readTasks(file, checked.data, wanted, schema);
      const at = (index: number) => {
        const task = tasks[index];
        if (task === undefined) throw new TaskError(`there is no task ${index} among ${tasks.length}`, { file });
        return task;
      };
      return { name: basename(file), size: tasks.length, warnings, at };
    },
  };
}

type Options = z.output<typeof optionsSchema>;

async function readTasks<Data>(
  file: string,
  options: Options,
  wanted: Split,
  schema: DataSchema<Data> | undefined,
): Promise<{ tasks: Task<Data>[]; warnings: string[] }> {
  const rows = jsonRows(await readTextFile(file), file);
  if (rows.length === 0) throw new TaskError('expected at least one task, the file holds none', { file });
  const seen = new Map<string, number>();
  const tasks: Task<Data>[] = [];
  const unanswered: number[] = [];
  for (const { line, value } of rows) {
    const where = { file, line };
    const read = dataOf(value, options, schema, where);
    if (read === undefined) {
      unanswered.push(line);
      continue;
    }
    const row = isObject(value) ? value : {};
    const id = idOf(row, options.id) ?? `${basename(file)}:${line}`;
    if (seen.has(id)) throw new TaskError(`the id '${id}' is already that of line ${seen.get(id)}`, where);
    seen.set(id, line);
    if (isOf(wanted, row, options, where)) tasks.push({ id, data: read.data });
  }
  if (tasks.length === 0) throw new TaskError(`expected at least one task of the split '${wanted}'`, { file });
  const warnings =
    unanswered.length === 0
      ? []
      : [
          `${file}:${unanswered[0]}: ${unanswered.length} of ${rows.length} tasks left out, their answer is null or empty`,
        ];
  return { tasks, warnings };
}

interface Where {
  readonly file: string;
  readonly line: number;
}

/**
 * A row as the team sees it: a numeric answer as it is where the schema takes it, else as text. A schema that asks for
 * neither question nor answer gets by without them. `undefined` where the answer is blank: nobody can grade that task.
 */
function dataOf<Data>(
  value: unknown,
  options: Options,
  schema: DataSchema<Data> | undefined,
  where: Where,
): { data: Data } | undefined {
  const filled = isObject(value) ? withQuestionAndAnswer(value, options) : undefined;
  if (filled?.answer === null || filled?.answer === '') return undefined;
  const asText = filled && withTextAnswer(filled);
  const checks = schema && filled ? [schema.safeParse(filled), schema.safeParse(asText)] : [];
  for (const checked of checks) if (checked.success) return { data: checked.data };
  const missing = whatIsMissing(value, options);
  if (missing !== undefined) throw new TaskError(missing, where);
  for (const checked of checks)
    if (!checked.success)
      throw new TaskError(`does not fit the team's task: ${issuesText(checked.error.issues)}`, where);
  return { data: asText as Data }; // without a schema the caller's word is taken for it
}

function isOf(wanted: Split, row: JsonRow, { question, split, test }: Options, where: Where): boolean {
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
