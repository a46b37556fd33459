import { cpus } from 'node:os';
import { join } from 'node:path';
import type { Backend } from '../contract/backend.js';
import { DrmasError, TrainingError } from '../core/errors.js';
import type { Host } from '../core/host.js';
import { packageVersion } from '../platform/package-version.js';
import type { Recipe } from '../recipe/recipe.js';
import type { RunDirectory } from '../store/run-directory.js';
import { REFERENCES } from '../store/run-files.js';
import { firstProgress } from '../training/checkpoint.js';
import { backendsOf, type OpenRun, type Progress, type Tasks, type TrainingRun } from '../training/run-state.js';
import { openCritics } from '../training/update/critics.js';
import { openReferences } from '../training/update/references.js';
import { warmStart } from '../training/warm-start/warm-start.js';
import type { OpenBackend } from './open-backends.js';
import { openRun, publishAll } from './open-run.js';

export interface RunRequest {
  readonly recipe: Recipe;
  readonly tasks: Tasks;
  readonly log: RunDirectory;
  readonly host: Host;
  readonly openBackend?: OpenBackend | undefined;
}

/** A run at the point where reinforcement may begin or go on. Whoever started it disposes of it. */
export interface StartedRun {
  readonly run: TrainingRun;
  readonly progress: Progress;
}

/** Opens a run, logs its first events and gives its policies the warm start. */
export async function beginRun({ recipe, tasks, log, host, openBackend }: RunRequest): Promise<StartedRun> {
  const run = await openRun(recipe, tasks, host, { openBackend });
  try {
    logStart(run, log);
    const warmed = recipe.warmStart === undefined ? undefined : await warmStart(run, log, recipe.warmStart);
    const references = await openReferences(run, { directory: join(log.path, REFERENCES), mode: 'write' });
    const critics = await openCritics(run, undefined);
    await publishAll(run);
    return { run: { ...run, references, critics }, progress: firstProgress(recipe, warmed) };
  } catch (error) {
    await run.dispose();
    throw failureOf(error);
  }
}

/** The first events of a run: what computes, and what a person should know about tasks, models and backend. */
function logStart({ recipe, assignment, backends, models, warnings }: OpenRun, log: RunDirectory): void {
  const [first, ...others] = backendsOf({ backends });
  const { kernels, isa, server } = facts(first as Backend);
  log.emit({
    type: 'run.started',
    recipe: recipe.name,
    seed: recipe.seed,
    versions: { drmas: packageVersion(), node: process.version },
    hardware: { cores: cpus().length, kernels, isa },
    ...(server === undefined ? {} : { server }),
    ...(others.length === 0
      ? {}
      : { backends: Object.fromEntries(Object.entries(backends).map(([name, backend]) => [name, facts(backend)])) }),
    parameters: Object.fromEntries(
      assignment.trained.flatMap(({ name }) => {
        const parameters = models[name]?.parameters;
        return parameters === undefined ? [] : [[name, parameters]];
      }),
    ),
  });
  for (const warning of warnings) log.emit({ type: 'warning', ...warning });
  for (const { endpoint, agents } of assignment.endpoints)
    log.emit({
      type: 'warning',
      code: 'endpoint.nondeterministic',
      message: `${agents.join(', ')}: ${endpoint.model} at ${endpoint.url} need not give the same answer twice; this run will not repeat bit for bit`,
    });
}

/** What computes on a backend, as the log keeps it. */
function facts({ hardware: { kernels, isa, server } }: Backend) {
  return { kernels, isa, ...(server === undefined ? {} : { server }) };
}

/** Once work has begun nothing is "the request was wrong" any more: the run has failed. */
export function failureOf(error: unknown): unknown {
  if (!(error instanceof DrmasError) || error.exitCode === 1) return error;
  return Object.assign(new TrainingError(`${error.name}: ${error.message}`), { cause: error });
}
