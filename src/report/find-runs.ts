import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { nodeFiles } from '../platform/node-files.js';
import { ABLATION } from '../store/ablation-record.js';
import { RECIPE } from '../store/run-files.js';

/** A run that was found in a folder. */
export interface FoundRun {
  readonly path: string;
  /** Its name in the folder: `first`, `sweep/drmas-seed-1`. */
  readonly name: string;
  /** The name of the ablation that it belongs to; absent where it stands for itself. */
  readonly ablation?: string;
}

/** What lies in a folder of runs. Paths are those of the folder, joined with names. */
export interface FoundRuns {
  readonly runs: readonly FoundRun[];
  /** The names of the ablations with their paths. */
  readonly ablations: ReadonlyMap<string, string>;
}

/**
 * Finds the runs of a folder, those of its ablations one by one; the folder itself where it is a run or an ablation.
 * Directories that hold no run are among them: reading one says what is wrong with it.
 * @throws the error of the file system when the folder cannot be read
 */
export async function findRuns(folder: string): Promise<FoundRuns> {
  const name = basename(resolve(folder));
  if (await nodeFiles.exists(join(folder, RECIPE))) return { runs: [{ path: folder, name }], ablations: new Map() };
  if (await nodeFiles.exists(join(folder, ABLATION))) return ablationRuns(folder, name);
  const below = await Promise.all(
    (await directoriesIn(folder)).map(async (name): Promise<FoundRuns> => {
      const path = join(folder, name);
      if (await nodeFiles.exists(join(path, ABLATION))) return ablationRuns(path, name);
      return { runs: [{ path, name }], ablations: new Map() };
    }),
  );
  return {
    runs: below.flatMap(({ runs }) => runs),
    ablations: new Map(below.flatMap(({ ablations }) => [...ablations])),
  };
}

async function ablationRuns(path: string, ablation: string): Promise<FoundRuns> {
  const names = await directoriesIn(path);
  const runs = names.map((name) => ({ path: join(path, name), name: `${ablation}/${name}`, ablation }));
  return { runs, ablations: new Map([[ablation, path]]) };
}

async function directoriesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  const shown = (entry: Dirent) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.');
  return entries
    .filter(shown)
    .map(({ name }) => name)
    .sort();
}
