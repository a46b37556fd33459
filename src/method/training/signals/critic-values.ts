import { joinPath } from '@drmas/engine/host';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import type { Critic } from '../run/learner.js';
import type { OpenRun, TrainingRun } from '../run/run-state.js';
import type { Signal } from '../run/signal.js';
import { scoreTurns } from '../samples/training-samples.js';

export const criticValues: Signal = {
  name: 'values',
  field: 'values',
  async score(turns) {
    const scored = await Promise.all(
      turns.map(async ({ learner: { critic }, chains }) =>
        critic === undefined ? [] : [...(await scoreTurns(chains, (samples) => critic.handle.values(samples)))],
      ),
    );
    return new Map(scored.flat().map(([turn, values]) => [turn, { values }]));
  },
  backend: { what: 'critic', has: ({ roles }) => roles.critic.length > 0 },
};

/** The directory of a policy's critic in a checkpoint; no policy can have this name. */
const directoryOf = (checkpoint: string, policy: string) => joinPath(checkpoint, `${policy}.critic`);

/**
 * Opens the critic of each policy: on the policy's weights, or from a checkpoint. A checkpoint has none if the recipe
 * had no critic when it was written.
 * @throws CheckpointError
 */
export async function openCritics(
  { trained, host }: Pick<OpenRun, 'trained' | 'host'>,
  checkpoint: Checkpoint | undefined,
): Promise<ReadonlyMap<string, Critic>> {
  const critics = new Map<string, Critic>();
  for (const { name, handle: policy, backend, settings } of trained) {
    if (settings?.critic === undefined) continue;
    const stored = checkpoint && directoryOf(checkpoint.directory, name);
    const directory = stored !== undefined && (await host.files.exists(stored)) ? stored : undefined;
    if (directory !== stored)
      host.warn('critic', `the critic of '${name}' begins anew, because ${stored} is not there`);
    const handle = await backend.open({ type: 'like', policy, directory }, 'critic', `${name}'s critic`);
    critics.set(name, { handle, settings: settings.critic });
  }
  return critics;
}

export async function saveCritics(
  { learners, host }: Pick<TrainingRun, 'learners' | 'host'>,
  checkpoint: string,
): Promise<void> {
  for (const { name, critic } of learners) {
    if (critic === undefined) continue;
    const directory = directoryOf(checkpoint, name);
    await host.files.makeDirectory(directory);
    await critic.handle.save(directory);
  }
}
