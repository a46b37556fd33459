import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { messageOf, RunError } from '@drmas/engine/errors';
import { codeOf, nodeFiles, pathFault } from '@drmas/engine/platform';
import {
  ABLATION,
  type AblationRecord,
  EVENTS,
  isAlive,
  lockHolder,
  missingRun,
  RECIPE,
  type RunRecord,
  type Variant,
  variantsOf,
} from '../../method/store.js';
import type { ComparedRun, ListedAblation, RunFacts, RunState } from '../../runs/analysis.js';

export const RUNS = 'runs';

export interface FoundRun {
  readonly path: string;
  /** Its name in the folder: `first`, `sweep/drmas-seed-1`. */
  readonly name: string;
  readonly ablation?: string;
}

/** The contents of a folder of runs. Each path is the folder's path joined with the name. */
interface FoundRuns {
  readonly runs: readonly FoundRun[];
  readonly ablations: ReadonlyMap<string, string>;
}

/**
 * Finds the runs of a folder and of the ablations in it. If the folder itself is a run or an ablation, finds that. The
 * result may have directories without a run; reading such a directory throws the reason.
 * @throws RunError if the folder cannot be read
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

/** The run, or the ablation of that run, whose event log was written last. @throws RunError */
export async function lastWritten(folder: string): Promise<string> {
  const none: FoundRuns = { runs: [], ablations: new Map() };
  const { runs, ablations } = await findRuns(folder).catch(() => none);
  const written = await Promise.all(
    runs.map(async ({ path, ablation = '' }) => {
      const log = await stat(join(path, EVENTS)).catch(() => undefined);
      return { path: ablations.get(ablation) ?? path, time: log?.mtimeMs ?? 0 };
    }),
  );
  const [last] = written.filter(({ time }) => time > 0).sort((a, b) => b.time - a.time);
  if (last === undefined) throw new RunError(`there is no run in ${folder}; name one: drmas report path/to/run`);
  return last.path;
}

/**
 * A run on another machine, or without a lock file, counts as running this long after its last event, in milliseconds.
 * Its clock, or this one, may be wrong: an event of the future is no sign of a run.
 */
const SILENCE_MS = 120_000;

/** The state of a run. It locks nothing; it reads the lock file of the process that writes the run. */
export async function runState(path: string, { state, latest }: RunFacts): Promise<RunState> {
  if (state !== 'unfinished') return state;
  const holder = await lockHolder(nodeFiles, path);
  if (holder !== undefined && holder.host === hostname()) return isAlive(holder.pid) ? 'running' : 'interrupted';
  return latest !== null && Math.abs(Date.now() - Date.parse(latest)) < SILENCE_MS ? 'running' : 'interrupted';
}

async function ablationRuns(path: string, ablation: string): Promise<FoundRuns> {
  const names = await directoriesIn(path);
  const runs = names.map((name) => ({ path: join(path, name), name: `${ablation}/${name}`, ablation }));
  return { runs, ablations: new Map([[ablation, path]]) };
}

async function directoriesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(async (error: unknown) => {
    if (codeOf(error) === 'ENOENT' || pathFault(path) !== undefined) throw await missingRun(nodeFiles, path, 'folder');
    throw new RunError(`cannot read ${path}: ${messageOf(error)}`);
  });
  const shown = (entry: Dirent) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.');
  return entries
    .filter(shown)
    .map(({ name }) => name)
    .sort();
}

export function listedAblation(
  name: string,
  record: AblationRecord,
  runs: readonly { readonly name: string; readonly record: RunRecord }[],
): ListedAblation {
  const variants = variantsOf(record);
  const common = record.recipe.overrides.length;
  return {
    name,
    variants: variants.map(({ name }) => name),
    baseline: record.baseline,
    ...(record.parts === undefined ? {} : { parts: record.parts }),
    runs: runs.flatMap((run) => comparedRun(run.name, run.record, variants, common) ?? []),
  };
}

/**
 * The name of the run's variant: its overrides minus those that all runs share. Undefined if the run belongs to none.
 */
function comparedRun(
  name: string,
  { recipe, resolved }: RunRecord,
  variants: readonly Variant[],
  common: number,
): ComparedRun | undefined {
  const rest = recipe.overrides.slice(common);
  const is = ({ overrides }: Variant) =>
    overrides.every((override, i) => override === rest[i]) && (rest[overrides.length] ?? 'seed=').startsWith('seed=');
  const variant = variants.find(is);
  if (variant === undefined || typeof resolved.seed !== 'number') return undefined;
  return { name, variant: variant.name, seed: resolved.seed };
}
