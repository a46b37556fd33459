import { join } from 'node:path';
import { RunError } from '../../base/errors.js';
import type { Files } from '../../base/host.js';
import { type Clock, systemClock } from '../../base/host.js';
import { nodeFiles, TEMPORARY } from '../../base/platform.js';
import { CHECKPOINTS, EPISODES } from './run-files.js';
import { LOCK } from './run-lock.js';

/** The default path of a new run, such as `runs/math-20260131-094501`, with a number appended if that path exists. */
export async function defaultRunPath(
  recipe: string,
  options: { readonly files?: Files; readonly clock?: Clock } = {},
): Promise<string> {
  const files = options.files ?? nodeFiles;
  const stamp = timeStamp((options.clock ?? systemClock).now());
  return freePath(files, join('runs', `${recipe.replaceAll(/[^A-Za-z0-9_-]+/g, '-')}-${stamp}`));
}

/** A path that does not exist yet: the given one, with a number appended if it exists. */
export async function freePath(files: Files, base: string, extension = ''): Promise<string> {
  for (let number = 1; ; number++) {
    const path = `${base}${number === 1 ? '' : `-${number}`}${extension}`;
    if (!(await files.exists(path))) return path;
  }
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
