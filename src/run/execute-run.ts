/** One execution of a recipe: from an empty or an interrupted run directory to its last event. */
import { cpus } from 'node:os';
import { join } from 'node:path';
import type { Episode } from '../core/episode.js';
import { DrmasError, TrainingError } from '../core/errors.js';
import type { EvaluationEvent, RunFinished } from '../core/events.js';
import type { Host } from '../core/host.js';
import { packageVersion } from '../platform/package-version.js';
import type { Recipe } from '../recipe/recipe.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import type { RunDirectory } from '../store/run-directory.js';
import { commitsOf, firstProgress, loadCheckpoint, saveCheckpoint } from '../training/checkpoint.js';
import { playEvaluation } from '../training/evaluation/evaluate-policies.js';
import type { OpenRun, Progress, Tasks } from '../training/run-state.js';
import { trainTeam } from '../training/train.js';
import { openCritics } from '../training/update/critics.js';
import { openReferences, REFERENCES } from '../training/update/references.js';
import { warmStart } from '../training/warm-start/warm-start.js';
import { openRun, prepareTasks } from './open-run.js';

export interface RunOptions {
  /** From where to go on; the log must have been rewound to it. */
  readonly checkpoint?: Checkpoint | undefined;
  /** What `prepareTasks` gave; read here where it was not called before. */
  readonly tasks?: Tasks | undefined;
}

/**
 * Trains in the directory `log`, from the recipe's beginning or, where `checkpoint` is given, from there.
 * An interruption writes a checkpoint. Every ending writes `run.finished`.
 * @throws the signal's reason when interrupted; TrainingError, BackendError and others when it fails
 */
export async function executeRun(
  recipe: Recipe,
  log: RunDirectory,
  machine: Host,
  options: RunOptions = {},
): Promise<void> {
  const { checkpoint } = options;
  const host = {
    ...machine,
    warn: (code: string, message: string) => void log.emit({ type: 'warning', code, message }),
  };
  const { clock, signal } = host;
  const started = clock.seconds();
  const finish = (reason: RunFinished['reason'], steps: number) =>
    log.emit({ type: 'run.finished', reason, steps, seconds: clock.seconds() - started });
  let run: OpenRun | undefined;
  let progress: Progress | undefined;
  let begun = false;
  try {
    const tasks = options.tasks ?? (await prepareTasks(recipe));
    run = await openRun(recipe, tasks, host, { commits: await commitsOf(host.files, checkpoint) });
    if (checkpoint === undefined) {
      logStart(run, log);
      begun = true;
      if (recipe.warmStart !== undefined) await warmStart(run, log, recipe.warmStart);
    }
    const position =
      checkpoint === undefined ? firstProgress(recipe) : await loadCheckpoint(run, checkpoint, { optimizer: true });
    begun = true;
    const mode = checkpoint === undefined ? 'write' : 'read';
    await openReferences(run, { directory: join(log.path, REFERENCES), mode });
    await openCritics(run, checkpoint);
    await publishAll(run);
    progress = position;
    await trainTeam(run, progress, log);
    finish('completed', progress.step);
  } catch (error) {
    try {
      if (signal.aborted && run !== undefined && progress !== undefined && progress.step > 0)
        await saveCheckpoint(run, progress, log, { interrupted: true });
    } finally {
      finish(signal.aborted ? 'stopped' : 'failed', progress?.step ?? 0);
    }
    if (signal.aborted) throw signal.reason;
    throw begun ? failureOf(error) : error;
  } finally {
    await run?.backend.dispose();
  }
}

/** The first events of a run: what computes, and what is not as the recipe asks. */
function logStart({ recipe, assignment, hardware, models, warnings }: OpenRun, log: RunDirectory): void {
  const { kernels, isa, server } = hardware;
  log.emit({
    type: 'run.started',
    recipe: recipe.name,
    seed: recipe.seed,
    versions: { drmas: packageVersion(), node: process.version },
    hardware: { cores: cpus().length, kernels, isa },
    ...(server === undefined ? {} : { server }),
    parameters: Object.fromEntries(
      assignment.trained.flatMap(({ name }) => {
        const parameters = models[name]?.info.parameters;
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

/** Once work has begun nothing is "the request was wrong" any more: the run has failed. */
function failureOf(error: unknown): unknown {
  if (!(error instanceof DrmasError) || error.exitCode === 1) return error;
  return Object.assign(new TrainingError(`${error.name}: ${error.message}`), { cause: error });
}

/** Plays the recipe's evaluation with the policies of a checkpoint. Writes nothing. */
export async function evaluateCheckpoint(
  recipe: Recipe,
  checkpoint: Checkpoint,
  host: Host,
): Promise<{ readonly event: EvaluationEvent; readonly episodes: readonly Episode[] }> {
  const purpose = 'evaluation';
  const commits = await commitsOf(host.files, checkpoint);
  const run = await openRun(recipe, await prepareTasks(recipe, purpose), host, { commits, purpose });
  try {
    const { step } = await loadCheckpoint(run, checkpoint, { optimizer: false });
    await publishAll(run);
    return await playEvaluation(run, { ...recipe.evaluation, step });
  } finally {
    await run.backend.dispose();
  }
}

/** Makes every model's weights the sampler's. */
export async function publishAll({ backend, assignment }: OpenRun): Promise<void> {
  await Promise.all(
    assignment.models.map(async ({ name }) => {
      await backend.publish(name);
      await backend.sync(name);
    }),
  );
}
