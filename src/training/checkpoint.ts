import { join } from 'node:path';
import { z } from 'zod';
import type { Commits } from '../backends/hub/local-models.js';
import { CheckpointError, messageOf } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { warmFrozen } from '../recipe/assignment.js';
import type { Recipe } from '../recipe/recipe.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import type { Session } from './session.js';
import { StabilityWatch } from './stability/stability-watch.js';
import { symptomState } from './stability/symptoms.js';
import { saveCritics } from './update/critics.js';
import { KlCoefficients } from './update/kl-penalty.js';

const STATE = 'state.json';

/** All that a run is beside its policies: random numbers are functions of the step, so there is no generator to save. */
const stateSchema = z.object({
  step: z.int().min(0),
  /** The last step that was evaluated, -1 for none. */
  evaluated: z.int().min(-1),
  watch: z.object({
    norms: z.record(z.string(), z.array(z.number())),
    dropped: z.record(z.string(), z.number()),
    symptoms: z.record(z.string(), symptomState).default({}),
  }),
  /** Coefficients that a controller has changed, by policy. */
  kl: z.record(z.string(), z.number()).default({}),
  /** Of models on hubs, by name: a branch may move before the run goes on. */
  commits: z.record(z.string(), z.string()).default({}),
});

/** At the end and every so many steps. */
export function checkpointDue({ recipe, step }: Session): boolean {
  return step > 0 && (step >= recipe.training.steps || step % recipe.training.checkpointEvery === 0);
}

/** Writes policies, optimisers and the position, whole or not at all. */
export async function saveCheckpoint(
  session: Session,
  options: { readonly interrupted?: boolean } = {},
): Promise<void> {
  const { run, backend, recipe, step, evaluated, watch, kl, files } = session;
  const fill = async (directory: string) => {
    const write = async (name: string, options: { optimizer: boolean }) => {
      const own = join(directory, name);
      await files.makeDirectory(own);
      await backend.save(name, own, options);
    };
    for (const policy of Object.keys(recipe.policies)) await write(policy, { optimizer: true });
    for (const { name } of warmFrozen(recipe)) await write(name, { optimizer: false });
    await saveCritics(session, directory);
    const state = { step, evaluated, watch: watch.state, kl: kl.state, commits: session.commits };
    await files.write(join(directory, STATE), JSON.stringify(state));
  };
  await run.writeCheckpoint(step, fill, options);
}

/** Puts the policies of a checkpoint into the backend and returns where the run stood. @throws CheckpointError */
export async function loadCheckpoint(
  { backend, recipe, files }: Pick<Session, 'backend' | 'recipe' | 'files'>,
  checkpoint: Checkpoint,
  options: { readonly optimizer: boolean },
): Promise<Position> {
  for (const policy of Object.keys(recipe.policies)) {
    await backend.load(policy, join(checkpoint.directory, policy), options);
  }
  for (const { name } of warmFrozen(recipe))
    await backend.load(name, join(checkpoint.directory, name), { optimizer: false });
  const state = await readState(files, join(checkpoint.directory, STATE));
  return {
    step: state.step,
    evaluated: state.evaluated,
    watch: new StabilityWatch(recipe.training.spike, state.watch),
    kl: new KlCoefficients(recipe.policies, state.kl),
  };
}

/** The commits of models on hubs that a run began with; of a run that begins none. @throws CheckpointError */
export async function commitsOf(files: Files, checkpoint: Checkpoint | undefined): Promise<Commits> {
  return checkpoint === undefined ? {} : (await readState(files, join(checkpoint.directory, STATE))).commits;
}

/** Where a run stands. */
type Position = Pick<Session, 'step' | 'evaluated' | 'watch' | 'kl'>;

/** Of a run before its first step. */
export function firstPosition({ training, policies }: Recipe): Position {
  return { step: 0, evaluated: -1, watch: new StabilityWatch(training.spike), kl: new KlCoefficients(policies) };
}

async function readState(files: Files, path: string): Promise<z.output<typeof stateSchema>> {
  try {
    return stateSchema.parse(JSON.parse(await files.readText(path)));
  } catch (error) {
    throw new CheckpointError(`${path} cannot be used: ${messageOf(error)}`);
  }
}
