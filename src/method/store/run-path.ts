import { basename, dirname, join } from 'node:path';
import { messageOf, RunError, suggestion } from '@drmas/engine/errors';
import { type Clock, type Files, systemClock } from '@drmas/engine/host';
import { nodeFiles, pathFault, TEMPORARY } from '@drmas/engine/platform';
import { LOCK, requireOwnFiles } from './run-lock.js';

export const RECIPE = 'recipe.json';
export const ABLATION = 'ablation.json';
export const EVENTS = 'events.jsonl';
/** Sizes and SHA-256: one line for each episode file, and a last line for all events. */
export const DIGESTS = 'digests.jsonl';
export const EPISODES = 'episodes';
export const CHECKPOINTS = 'checkpoints';
/** References that cannot be computed again: warm-started weights. */
export const REFERENCES = 'references';

/** The most characters of a recipe in the name of a directory. */
const LONGEST_NAME = 100;

/**
 * The default path of a new run, such as `runs/math-20260131-094501`, or of a file with an extension. If the path
 * exists, a number is appended.
 */
export async function defaultRunPath(
  recipe: string,
  options: { readonly files?: Files; readonly clock?: Clock; readonly extension?: string } = {},
): Promise<string> {
  const files = options.files ?? nodeFiles;
  const stamp = timeStamp((options.clock ?? systemClock).now());
  const name = recipe.replaceAll(/[^A-Za-z0-9_-]+/g, '-').slice(0, LONGEST_NAME);
  return freePath(files, join('runs', `${name}-${stamp}`), options.extension);
}

/** A path that does not exist yet: the given one, with a number appended if it exists. */
export async function freePath(files: Files, base: string, extension = ''): Promise<string> {
  for (let number = 1; ; number++) {
    const path = `${base}${number === 1 ? '' : `-${number}`}${extension}`;
    if (!(await files.exists(path))) return path;
  }
}

export async function runsBeside(files: Files, path: string): Promise<string[]> {
  const folder = dirname(path);
  const names = await files.list(folder).catch(() => []);
  const records = [RECIPE, ABLATION];
  const isRun = await Promise.all(
    names.map((name) =>
      Promise.all(records.map((record) => files.exists(join(folder, name, record)).catch(() => false))),
    ),
  );
  return names.filter((_, i) => isRun[i]?.includes(true)).sort();
}

/** The error for a run, or a folder of runs, that is not there: it names the runs beside it. */
export async function missingRun(files: Files, path: string, what: 'run' | 'folder' = 'run'): Promise<RunError> {
  const fault = pathFault(path);
  if (fault !== undefined) return new RunError(`${path} ${fault}`);
  const beside = suggestion(basename(path), await runsBeside(files, path));
  const advice = what === 'run' ? '; `drmas runs` lists the runs of a folder' : '';
  return new RunError(`there is no ${what} ${path}${beside || advice}`);
}

/** The error for a path without `recipe.json`: it says what is there. */
export async function notARun(files: Files, path: string): Promise<RunError> {
  const isThere = pathFault(path) === undefined && (await files.exists(path));
  return isThere ? new RunError(`${path} is not a run: it has no ${RECIPE}`) : missingRun(files, path);
}

/** @throws RunError if there is no run in this directory, or if it has a link out of it */
export async function requireRun(files: Files, path: string): Promise<void> {
  requireOwnFiles(path, [RECIPE]);
  if (await files.exists(join(path, RECIPE))) return requireOwnFiles(path);
  throw await notARun(files, path);
}

/** The local time as `20260131-094501`. */
export function timeStamp(now: Date): string {
  const pad = (value: number) => String(value).padStart(2, '0');
  const date = `${now.getFullYear()}${pad(now.getMonth() + 1)}${pad(now.getDate())}`;
  return `${date}-${pad(now.getHours())}${pad(now.getMinutes())}${pad(now.getSeconds())}`;
}

/** @throws RunError if a directory holds more than the first files of a run that was killed during its creation */
export async function requireFree(files: Files, path: string): Promise<void> {
  if (!(await files.exists(path))) return;
  for (const name of await files.list(path)) {
    if (name === LOCK || name.startsWith(TEMPORARY)) continue;
    const begun = name === EPISODES || name === CHECKPOINTS;
    if (!begun || (await files.list(join(path, name))).length > 0)
      throw new RunError(`${path} exists and is not empty; choose another directory with --run, or resume it`);
  }
}

/** Does work in a run directory. @throws RunError if the directory cannot be written */
export async function writing<Result>(path: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof RunError) throw error;
    throw new RunError(`the run directory ${path} cannot be written: ${messageOf(error)}`);
  }
}
