/** One execution of a recipe: from an empty or an interrupted run directory to its last event. */
import { cpus } from 'node:os';
import { type Clock, systemClock } from '../core/clock.js';
import type { Episode } from '../core/episode.js';
import { ArgumentError, DrmasError, TrainingError } from '../core/errors.js';
import type { EvaluationEvent, RunFinished } from '../core/events.js';
import type { Files } from '../core/files.js';
import { nodeFiles } from '../platform/node-files.js';
import { packageVersion } from '../platform/package-version.js';
import { allModels, frozenEndpoints } from '../recipe/assignment.js';
import type { Recipe } from '../recipe/recipe.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import type { RunDirectory } from '../store/run-directory.js';
import { commitsOf, firstPosition, loadCheckpoint, saveCheckpoint } from '../training/checkpoint.js';
import { evaluateStage } from '../training/evaluation/evaluate-policies.js';
import type { Session, Tasks } from '../training/session.js';
import { trainTeam } from '../training/train.js';
import { openCritics } from '../training/update/critics.js';
import { openReferences } from '../training/update/references.js';
import { warmStart } from '../training/warm-start/warm-start.js';
import { openStage, prepareTasks, type StageOptions } from './open-run.js';

export interface ExecutionOptions {
  /** Threads of the engine's kernels. */
  readonly threads: number;
  readonly signal?: AbortSignal | undefined;
  readonly files?: Files;
  readonly clock?: Clock;
  /** Told what a person should know but the event log need not keep. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

export interface RunOptions extends ExecutionOptions {
  /** From where to go on; the log must have been rewound to it. */
  readonly checkpoint?: Checkpoint | undefined;
  /** What `prepareTasks` gave; read here where it was not called before. */
  readonly tasks?: Tasks | undefined;
}

/**
 * Trains in `run`, from its beginning or, where `checkpoint` is given, from there.
 * An interruption writes a checkpoint. Every ending writes `run.finished`.
 * @throws the signal's reason when interrupted; TrainingError, BackendError and others when it fails
 */
export async function executeRun(recipe: Recipe, run: RunDirectory, options: RunOptions): Promise<void> {
  const stageOptions = {
    ...withDefaults(options),
    onWarning: (code: string, message: string) => void run.emit({ type: 'warning', code, message }),
  };
  const { clock, signal, onNotice } = stageOptions;
  const started = clock.seconds();
  const finish = (reason: RunFinished['reason'], steps: number) =>
    run.emit({ type: 'run.finished', reason, steps, seconds: clock.seconds() - started });
  let session: Session | undefined;
  let begun = false;
  let dispose = async () => {};
  try {
    const tasks = options.tasks ?? (await prepareTasks(recipe));
    const commits = await commitsOf(stageOptions.files, options.checkpoint);
    const stage = await openStage(recipe, tasks, { ...stageOptions, commits });
    dispose = () => stage.backend.dispose();
    const { kernels, isa, server } = stage.hardware;
    if (options.checkpoint === undefined) {
      run.emit({
        type: 'run.started',
        recipe: recipe.name,
        seed: recipe.seed,
        versions: { drmas: packageVersion(), node: process.version },
        hardware: { cores: cpus().length, kernels, isa },
        ...(server === undefined ? {} : { server }),
        parameters: Object.fromEntries(
          Object.keys(recipe.policies).flatMap((policy) => {
            const parameters = stage.policies[policy]?.parameters;
            return parameters === undefined ? [] : [[policy, parameters]];
          }),
        ),
      });
      for (const warning of stage.warnings) run.emit({ type: 'warning', ...warning });
      for (const { spec, agents } of frozenEndpoints(recipe))
        run.emit({
          type: 'warning',
          code: 'endpoint.nondeterministic',
          message: `${agents.join(', ')}: ${spec.model} at ${spec.url} need not give the same answer twice; this run will not repeat bit for bit`,
        });
      begun = true;
      if (recipe.warmStart !== undefined) await warmStart(stage, run, recipe.warmStart, onNotice);
    }
    const position =
      options.checkpoint === undefined
        ? firstPosition(recipe)
        : await loadCheckpoint(stage, options.checkpoint, { optimizer: true });
    begun = true;
    await openReferences(stage, run, { resumed: options.checkpoint !== undefined });
    await openCritics(stage, options.checkpoint);
    await publishAll(stage);
    session = { ...stage, ...position, run };
    await trainTeam(session);
    finish('completed', session.step);
  } catch (error) {
    try {
      if (signal.aborted && session !== undefined && session.step > 0)
        await saveCheckpoint(session, { interrupted: true });
    } finally {
      finish(signal.aborted ? 'stopped' : 'failed', session?.step ?? 0);
    }
    if (signal.aborted) throw signal.reason;
    throw begun ? failureOf(error) : error;
  } finally {
    await dispose();
  }
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
  options: ExecutionOptions,
): Promise<{ readonly event: EvaluationEvent; readonly episodes: readonly Episode[] }> {
  const stageOptions = withDefaults(options);
  const commits = await commitsOf(stageOptions.files, checkpoint);
  const purpose = 'evaluation';
  const stage = await openStage(recipe, await prepareTasks(recipe, purpose), { ...stageOptions, commits, purpose });
  try {
    const { step } = await loadCheckpoint(stage, checkpoint, { optimizer: false });
    await publishAll(stage);
    return await evaluateStage(stage, { ...recipe.evaluation, step });
  } finally {
    await stage.backend.dispose();
  }
}

/** Makes every model's weights the sampler's. */
export async function publishAll({ backend, recipe }: Pick<Session, 'backend' | 'recipe'>): Promise<void> {
  await Promise.all(
    allModels(recipe).map(async ({ name }) => {
      await backend.publish(name);
      await backend.sync(name);
    }),
  );
}

export function withDefaults({ threads, signal, files, clock, onNotice }: ExecutionOptions): StageOptions {
  if (!Number.isInteger(threads) || threads < 1)
    throw new ArgumentError(`threads: expected at least 1, got ${threads}`);
  return {
    threads,
    signal: signal ?? new AbortController().signal,
    files: files ?? nodeFiles,
    clock: clock ?? systemClock,
    onNotice: onNotice ?? (() => {}),
    onWarning: (_, message) => onNotice?.(message),
  };
}
