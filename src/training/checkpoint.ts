import { join } from 'node:path';
import { z } from 'zod';
import type { Commits } from '../backends/hub/local-models.js';
import { CheckpointError, messageOf } from '../core/errors.js';
import type { Files } from '../core/files.js';
import type { Recipe } from '../recipe/recipe.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import { type OpenRun, type Progress, policyNamed, type RunLog, type TrainingRun } from './run-state.js';
import { StabilityWatch } from './stability/stability-watch.js';
import { symptomState } from './stability/symptoms.js';
import { saveCritics } from './update/critics.js';
import { KlCoefficients } from './update/kl-penalty.js';

const STATE = 'state.json';

/** A run's progress as a checkpoint holds it beside the policies. */
const stateSchema = z.object({
  step: z.int().min(0),
  /** The last step that was evaluated, -1 for none. */
  evaluated: z.int().min(-1),
  watch: z.object({
    norms: z.record(z.string(), z.array(z.number())),
    dropped: z.record(z.string(), z.number()),
    symptoms: z.record(z.string(), symptomState).default({}),
    silent: z.record(z.string(), z.number()).default({}),
  }),
  /** Coefficients that a controller has changed, by policy. */
  kl: z.record(z.string(), z.number()).default({}),
  /** What the estimator keeps from step to step; not there for one that keeps nothing. */
  estimator: z.record(z.string(), z.number()).default({}),
  /** The success that a curriculum predicts, by level; not there without one. */
  predictions: z.record(z.string(), z.number()).default({}),
  /** Commits of models on hubs, by name: a branch may move before the run goes on. */
  commits: z.record(z.string(), z.string()).default({}),
  /** The hash by which the cache names the warm start; not there without one. */
  warmStart: z.string().optional(),
});

/** Whether a checkpoint is to be written: at the end and every so many steps. */
export function checkpointDue({ training }: Recipe, { step }: Progress): boolean {
  return step > 0 && (step >= training.steps || step % training.checkpointEvery === 0);
}

/** Writes policies, optimisers, critics and the progress, whole or not at all, however long that takes. */
export async function saveCheckpoint(
  run: TrainingRun,
  { step, evaluated, watch, kl, estimator, predictions, warmStart }: Progress,
  log: RunLog,
  options: { readonly interrupted?: boolean } = {},
): Promise<void> {
  const { assignment, commits, recipe } = run;
  const { files, protect } = run.host;
  const fill = async (directory: string) => {
    const write = async (name: string, options: { optimizer: boolean }) => {
      const place = join(directory, name);
      await files.makeDirectory(place);
      await policyNamed(run, name).save(place, options);
    };
    for (const { name } of assignment.trained) await write(name, { optimizer: true });
    for (const { name } of assignment.warmStartedFrozen) await write(name, { optimizer: false });
    await saveCritics(run, directory);
    const kept = {
      ...(Object.keys(estimator).length === 0 ? {} : { estimator }),
      ...(Object.keys(predictions).length === 0 ? {} : { predictions }),
      ...(warmStart === undefined ? {} : { warmStart }),
    };
    const state = { step, evaluated, watch: watch.state, kl: kl.state, commits, ...kept };
    await files.write(join(directory, STATE), JSON.stringify(state));
  };
  await protect(() => log.writeCheckpoint(step, fill, { ...options, keep: recipe.training.keepCheckpoints }));
}

/** Puts the models of a checkpoint into the backend and returns how far the run had come. @throws CheckpointError */
export async function loadCheckpoint(
  run: OpenRun,
  { step, directory }: Checkpoint,
  options: { readonly optimizer: boolean },
): Promise<Progress> {
  const { recipe, assignment, host } = run;
  const state = await readState(host.files, join(directory, STATE));
  if (state.step !== step)
    throw new CheckpointError(`${join(directory, STATE)} is of step ${state.step}, its directory of step ${step}`);
  for (const { name } of assignment.trained) await policyNamed(run, name).load(join(directory, name), options);
  for (const { name } of assignment.warmStartedFrozen)
    await policyNamed(run, name).load(join(directory, name), { optimizer: false });
  return {
    step: state.step,
    evaluated: state.evaluated,
    watch: new StabilityWatch(recipe, state.watch),
    kl: new KlCoefficients(recipe.policies, state.kl),
    estimator: state.estimator,
    predictions: state.predictions,
    warmStart: state.warmStart,
  };
}

/**
 * The commits of models on hubs that a run began with; none of a run that is about to begin.
 * @throws CheckpointError
 */
export async function commitsOf(files: Files, checkpoint: Checkpoint | undefined): Promise<Commits> {
  return checkpoint === undefined ? {} : (await readState(files, join(checkpoint.directory, STATE))).commits;
}

/** The hash of the warm start that a checkpoint's run began with; undefined without one. @throws CheckpointError */
export async function warmStartOf(files: Files, { directory }: Checkpoint): Promise<string | undefined> {
  return (await readState(files, join(directory, STATE))).warmStart;
}

/** The progress of a run before its first step. `warmStart` names the one that its policies were given. */
export function firstProgress(recipe: Recipe, warmStart?: string): Progress {
  return {
    step: 0,
    evaluated: -1,
    watch: new StabilityWatch(recipe),
    kl: new KlCoefficients(recipe.policies),
    estimator: {},
    predictions: {},
    warmStart,
  };
}

async function readState(files: Files, path: string): Promise<z.output<typeof stateSchema>> {
  try {
    return stateSchema.parse(JSON.parse(await files.readText(path)));
  } catch (error) {
    throw new CheckpointError(`${path} cannot be used: ${messageOf(error)}`);
  }
}
