/** Critics: how they are opened and saved, and the values that they predict. */
import { join } from 'node:path';
import { needOf } from '../../advantage/estimators/index.js';
import type { CriticHandle } from '../../contract/handles.js';
import type { Turn } from '../../core/episode.js';
import type { CriticSettings } from '../../recipe/learning.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import { backendNamed, type OpenRun, policyNamed, type TrainingRun } from '../run-state.js';
import type { ChainsByPolicy } from '../step/chains-by-policy.js';
import { scoreTurns } from './training-samples.js';

/** The directory of a policy's critic in a checkpoint; no policy can have this name. */
const directoryOf = (checkpoint: string, policy: string) => join(checkpoint, `${policy}.critic`);

/** The critic of each policy, by its name, where the estimator uses them. */
function criticsOf({ advantage, policies }: Recipe): [policy: string, settings: CriticSettings][] {
  if (needOf(advantage) !== 'values') return [];
  return Object.entries(policies).flatMap(([policy, { critic }]) => (critic === undefined ? [] : [[policy, critic]]));
}

/**
 * Gives every policy its critic, with the policy's weights as its trunk, or as a checkpoint left it.
 * @throws CheckpointError
 */
export async function openCritics(
  run: OpenRun,
  checkpoint: Checkpoint | undefined,
): Promise<ReadonlyMap<string, CriticHandle>> {
  const critics = new Map<string, CriticHandle>();
  for (const [name] of criticsOf(run.recipe)) {
    const directory = checkpoint && directoryOf(checkpoint.directory, name);
    const weights = { type: 'like', policy: policyNamed(run, name), directory } as const;
    critics.set(name, await backendNamed(run, name).open(weights, 'critic', `${name}'s critic`));
  }
  return critics;
}

/** Writes the critics into a checkpoint's directory. */
export async function saveCritics({ critics, host }: TrainingRun, checkpoint: string): Promise<void> {
  for (const [policy, critic] of critics) {
    const directory = directoryOf(checkpoint, policy);
    await host.files.makeDirectory(directory);
    await critic.save(directory);
  }
}

/** The value of each response token [R] of the turns of policies with a critic. */
export async function criticValues(
  { critics }: TrainingRun,
  chains: ChainsByPolicy,
): Promise<ReadonlyMap<Turn, Float32Array>> {
  const values = await Promise.all(
    Array.from(critics, ([policy, critic]) =>
      scoreTurns(chains.get(policy) ?? [], (samples) => critic.values(samples)),
    ),
  );
  return new Map(values.flatMap((each) => [...each]));
}

/** The settings of a policy's critic, where the estimator uses critics. */
export function criticSettings(recipe: Recipe, policy: string): CriticSettings | undefined {
  return criticsOf(recipe).find(([name]) => name === policy)?.[1];
}

/** Number of steps at the beginning in which a policy waits for its critic; 0 without one. */
export function stepsAhead(recipe: Recipe, policy: string): number {
  return criticSettings(recipe, policy)?.aheadSteps ?? 0;
}
