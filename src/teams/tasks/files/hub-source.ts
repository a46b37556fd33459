/** Tasks from a data set on a hub, by its name. */

import { messageOf, RecipeError, TaskError } from '@drmas/engine/errors';
import { datasetFiles, parseDatasetId } from '@drmas/engine/formats';
import type { Split, TaskSource } from '@drmas/engine/nouns';
import { z } from 'zod';
import { checkedOptions } from '../checked-options.js';
import type { HubOptions } from '../task-options.js';
import { type QuestionAndAnswer, readTasks, rowFields } from './file-source.js';

const { split: _, origin: __, ...fields } = rowFields;

const text = z.string().min(1).nullish();

export const hubSettings = z.strictObject({
  config: text.describe(
    'The configuration: the folder of its files, such as `main`. If it is not given: the only one, else `default` or `main`.',
  ),
  split: text.describe(
    'The split of the data set, such as `validation`. If it is not given: the split that is asked for, `train` or `test`; ' +
      'with `test`: `train`.',
  ),
  revision: text.describe('A branch, a tag or a commit. If it is not given: `main`.'),
  files: z
    .array(z.string().min(1))
    .min(1)
    .readonly()
    .nullish()
    .describe(
      'The paths of the files in the data set. If it is not given, drmas takes the files whose path names the split ' +
        '(`train-00000-of-00001.parquet`, `data/test.jsonl`): Parquet, JSON, JSON lines, CSV.',
    ),
  ...fields,
});

type HubSettings = z.output<typeof hubSettings>;

/**
 * Reads tasks from a data set on Hugging Face's hub, or on the hub that HF_ENDPOINT names. drmas downloads only the
 * files of the split, once, into the cache that other programs use too; without a network, or with HF_HUB_OFFLINE=1, it
 * reads the cache. The run records the commit and the SHA-256 of each file, and a resumed run reads that commit.
 * Rows become tasks as with `file`.
 *
 * @param name `org/name`
 * @throws RecipeError naming the option that is wrong. `load` throws HubError when a file can neither be found nor
 * downloaded, and TaskError when the data set has no such split or a row is no task
 *
 * @example
 * ```ts
 * import { hub } from 'drmas/tasks';
 *
 * const tasks = hub('openai/gsm8k', { config: 'main', revision: 'main' });
 * ```
 */
export function hub<Data = QuestionAndAnswer>(name: string, options: HubOptions = {}): TaskSource<Data> {
  const checked = checkedOptions('hub', hubSettings, options);
  const {
    config = null,
    split = null,
    files = null,
    question = null,
    id = null,
    metadata = null,
    test = null,
    maxQuestionTokens,
  } = checked;
  const revision = checked.revision ?? 'main';
  const dataset = datasetNamed(name, revision);
  const answer = typeof checked.answer === 'string' ? checked.answer : null;
  return {
    name,
    settings: {
      dataset: name,
      config,
      split,
      revision,
      files,
      question,
      answer,
      id,
      metadata,
      test,
      maxQuestionTokens,
    },
    configure: ({ dataset: other, answer: changed, ...rest }) =>
      hub(other as string, { ...rest, answer: (changed as string | null | undefined) ?? checked.answer }),
    async load(wanted, schema, { commits = {}, signal, notify } = {}) {
      const origin = `datasets/${name}@${revision}`;
      const downloaded = await datasetFiles(dataset, (names) => chosenFiles(name, names, checked, wanted), {
        commit: commits[origin],
        signal,
        onProgress: notify,
      });
      const [first, ...rest] = downloaded.files.map(({ path, name: file }) => ({ path, name: file }));
      if (first === undefined) throw new TaskError(`the data set ${name} has no files of the split '${wanted}'`);
      const tasks = await readTasks(name, [first, ...rest], { ...checked, split: null }, { wanted, schema });
      const digests = Object.fromEntries(downloaded.files.map((file) => [file.name, file.sha256]));
      return { ...tasks, origins: [{ name: origin, commit: downloaded.commit, files: digests }] };
    },
  };
}

/** @throws RecipeError for a name that no hub has */
function datasetNamed(name: unknown, revision: string) {
  try {
    const id = typeof name === 'string' ? parseDatasetId(name, revision) : undefined;
    if (id !== undefined) return id;
  } catch (error) {
    throw new RecipeError(`hub: revision: ${messageOf(error)}`);
  }
  throw new RecipeError(`hub: dataset: expected the name of a data set, org/name, got ${JSON.stringify(name)}`);
}

const DATA = /\.(?:parquet|jsonl|json|ndjson|csv|tsv)$/i;

/** Words in a path that name a split, besides the name of the split itself. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  train: ['train', 'training'],
  validation: ['validation', 'valid', 'val', 'dev'],
  test: ['test', 'testing', 'eval', 'evaluation'],
};

/** A file of data: its configuration, the folder that no split is named after, and its split. */
interface DataFile {
  readonly path: string;
  readonly config: string;
  readonly split: string | undefined;
}

/** Folders that collections put all of their files in; they name no configuration. */
const NO_CONFIG = new Set(['data', 'default']);

function dataFile(path: string, wanted: string): DataFile {
  const folders = path.split('/').slice(0, -1);
  const stem = (path.split('/').at(-1) ?? '').replace(DATA, '');
  const split =
    splitIn(stem, wanted) ?? folders.map((folder) => splitIn(folder, wanted)).find((one) => one !== undefined);
  const config = folders.filter((folder) => splitIn(folder, wanted) === undefined && !NO_CONFIG.has(folder)).join('/');
  return { path, config: config === '' ? 'default' : config, split };
}

/** The split that a part of a path names: a whole word of it, such as `train` in `train-00000-of-00001`. */
function splitIn(part: string, wanted: string): string | undefined {
  if (part === wanted) return wanted;
  const [, name] = /^(\w+)-\d{5}-of-\d{5}/.exec(part) ?? []; // as the library `datasets` writes files
  if (name !== undefined) return name;
  const words = part.toLowerCase().split(/[^a-z]+/);
  return Object.keys(WORDS).find((split) => WORDS[split]?.some((word) => words.includes(word)));
}

/**
 * The files of the split, sorted by path.
 * @throws TaskError with the configurations, the splits or the files that there are
 */
function chosenFiles(
  dataset: string,
  names: readonly string[],
  { config, split, files, test }: HubSettings,
  wanted: Split,
): readonly string[] {
  const file = `datasets/${dataset}`;
  const data = names.filter((name) => DATA.test(name)).sort();
  const list = (all: readonly string[]) => (all.length === 0 ? 'none' : [...new Set(all)].slice(0, 20).join(', '));
  if (files != null) {
    const absent = files.find((path) => !names.includes(path));
    if (absent === undefined) return files;
    throw new TaskError(`there is no file ${absent}; its files of data: ${list(data)}`, { file });
  }
  const name = split ?? (test == null ? wanted : 'train');
  const all = data.map((path) => dataFile(path, name));
  const ofSplit = all.filter((one) => one.split === name);
  if (ofSplit.length === 0) {
    const splits = list(all.flatMap((one) => one.split ?? []));
    const advice =
      splits === 'none' ? `choose with files: ${list(data)}` : 'choose with split, or divide one with test';
    throw new TaskError(`has no split '${name}'; its splits: ${splits}; ${advice}`, { file });
  }
  const configs = [...new Set(ofSplit.map((one) => one.config))];
  const only = configs.length === 1 ? configs[0] : configs.find((one) => one === 'default' || one === 'main');
  const chosen = config ?? only;
  const ofConfig = ofSplit.filter((one) => one.config === chosen);
  if (ofConfig.length > 0) return ofConfig.map(({ path }) => path);
  const problem = config == null ? 'has several configurations' : `has no configuration '${config}'`;
  throw new TaskError(`${problem} with the split '${name}': ${list(configs)}; choose with config`, { file });
}
