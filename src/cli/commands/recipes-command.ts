import { constants } from 'node:fs';
import { copyFile, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, extname, join, resolve, sep } from 'node:path';
import { isObject, messageOf, RunError } from '@drmas/engine/errors';
import { recipeJson } from '../../method/recipe.js';
import { loadRecipe, shippedRecipes } from '../../method/recipe-files.js';
import { resolveRecipe } from '../../runs/composition.js';
import { requestRecipe } from '../../runs/index.js';
import { argument, defineCommand } from '../define-command.js';
import { set, text, toggle } from '../flags.js';
import { modelText } from '../reporter/start-printer.js';

const show = defineCommand({
  name: 'show',
  description: 'print a recipe with all its settings',
  details: 'prints a recipe with all its settings, defaults included',
  arguments: [argument('recipe', 'name or file')],
  flags: { set },
  examples: [],
  async run(context, [source], flags) {
    const { recipe } = await requestRecipe(source, flags);
    context.stdout.write(`${JSON.stringify(recipeJson(recipe), null, 2)}\n`);
    return 0;
  },
});

const files = defineCommand({
  name: 'files',
  description: "list a recipe's task files, and take missing ones from a folder of downloads",
  details:
    'lists the task files of a recipe and names the dataset of each missing file. `--from` copies missing files from a folder with downloads of the Hugging Face hub, as `hf download` leaves them. Existing files stay. The exit code is 1 if a file is missing',
  arguments: [argument('recipe', 'name or file')],
  flags: {
    set,
    from: text('folder', 'copy missing files from this folder of downloads'),
    json: toggle('print the files as JSON'),
  },
  examples: ['drmas recipes files paper-math', 'drmas recipes files paper-math --from ~/Downloads'],
  async run({ stdout }, [source], { from, json, ...flags }) {
    const { recipe } = await requestRecipe(source, flags);
    const { train, test } = recipe.tasks;
    const wanted = [...filesOf('tasks.train', train.settings), ...filesOf('tasks.test', test.settings)];
    const downloads = from === undefined ? undefined : { folder: from, paths: await pathsIn(from) };
    const states: FoundFile[] = [];
    // One after another: both splits may name one file.
    for (const file of wanted) states.push(await placed(file, downloads));
    if (json === true) stdout.write(`${JSON.stringify({ type: 'recipe-files', files: states })}\n`);
    else if (states.length === 0) stdout.write('the recipe reads no task files\n');
    else for (const { file, state } of states) stdout.write(`${file}\n  ${state}\n`);
    return states.every(({ here }) => here) ? 0 : 1;
  },
});

interface TaskFile {
  readonly file: string;
  readonly settings: string;
  /** A dataset of the Hugging Face hub, a folder in it if needed, and the start of the file's name. */
  readonly origin?: string | undefined;
}

interface FoundFile extends TaskFile {
  readonly here: boolean;
  readonly state: string;
}

interface Downloads {
  readonly folder: string;
  readonly paths: readonly string[];
}

/** The files that a source's settings name; a source of several benchmarks has settings for each. */
function filesOf(path: string, settings: unknown): TaskFile[] {
  if (!isObject(settings)) return [];
  const { file, origin } = settings;
  if (typeof file === 'string')
    return [{ file, settings: path, origin: typeof origin === 'string' ? origin : undefined }];
  return Object.entries(settings).flatMap(([name, inner]) => filesOf(`${path}.${name}`, inner));
}

/** @throws RunError if the folder cannot be read */
async function pathsIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder, { recursive: true })).sort();
  } catch (error) {
    throw new RunError(`cannot read the folder of downloads ${folder} (${messageOf(error)})`);
  }
}

/** The state of a file, after it was copied if that was possible. @throws RunError if the copy fails */
async function placed(wanted: TaskFile, downloads: Downloads | undefined): Promise<FoundFile> {
  const { file, origin, settings } = wanted;
  const stateOf = (here: boolean, state: string): FoundFile => ({ ...wanted, here, state });
  const status = await stat(resolve(file)).catch(() => undefined);
  if (status?.isFile() === true) return stateOf(true, 'is here');
  if (origin === undefined) return stateOf(false, 'missing; the recipe does not say where it comes from');
  if (downloads === undefined) return stateOf(false, `missing: ${origin} of the Hugging Face hub`);
  const matches = downloads.paths.filter((path) => isDownloadOf(resolve(downloads.folder, path), origin));
  const [match, ...others] = matches.map((path) => join(downloads.folder, path));
  if (match === undefined) return stateOf(false, `missing: ${origin} is not in ${downloads.folder}`);
  if (others.length > 0)
    return stateOf(false, `missing: ${origin} could be ${matches.length} files: ${[match, ...others].join(', ')}`);
  if (extname(match) !== extname(file))
    return stateOf(false, `missing: ${match} has another format; use it with --set ${settings}.file=${match}`);
  try {
    await mkdir(dirname(resolve(file)), { recursive: true });
    await copyFile(match, resolve(file), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  } catch (error) {
    throw new RunError(`cannot copy ${match} to ${file} (${messageOf(error)})`);
  }
  return stateOf(true, `copied from ${match}`);
}

/**
 * Whether a path is a dataset's file: in a folder of the dataset's name (`org/name` or `name`, or the cache's
 * `datasets--org--name`), below the origin's inner folder, and with the start of its name, as in
 * `train-00000-of-00001.parquet`.
 */
function isDownloadOf(path: string, origin: string): boolean {
  const colon = origin.lastIndexOf(':');
  const start = origin.slice(colon + 1);
  const [organisation = '', dataset = '', ...inner] = origin.slice(0, colon).split('/');
  const folders = path.split(sep);
  const name = folders.pop() ?? '';
  const at = folders.findLastIndex(
    (folder) => folder === dataset || folder === `datasets--${organisation}--${dataset}`,
  );
  if (at < 0) return false;
  const below = `/${folders.slice(at + 1).join('/')}/`;
  const ending = /^(-\d+-of-\d+)?\.(parquet|jsonl|json|csv|tsv)$/;
  return (
    (inner.length === 0 || below.includes(`/${inner.join('/')}/`)) &&
    name.startsWith(start) &&
    ending.test(name.slice(start.length))
  );
}

export const recipes = defineCommand({
  name: 'recipes',
  description: 'list the recipes that ship with drmas',
  details:
    'lists the recipes that ship with drmas. `drmas recipes show <recipe>` prints one with all its settings, `drmas recipes files <recipe>` its task files',
  arguments: [],
  flags: {},
  examples: ['drmas recipes', 'drmas recipes show math'],
  async run(context) {
    const rows = await Promise.all(
      shippedRecipes().map(async (name) => {
        const { definition } = await loadRecipe(name);
        const { team, tasks, policies } = resolveRecipe(definition, { name });
        const models = new Set(Object.values(policies).map(({ model }) => modelText(model)));
        const agents = Object.keys(team.agents).join(' + ');
        return `${name}\n  ${agents} on ${tasks.train.name}; ${Object.keys(policies).length} x ${[...models].join(' / ')}\n`;
      }),
    );
    context.stdout.write(rows.join(''));
    context.stdout.write('\nSettings of a recipe: drmas recipes show <name>\n');
    return 0;
  },
  subcommands: [show, files],
});
