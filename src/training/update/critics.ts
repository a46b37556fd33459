/** Critics: the values they predict, how they learn from returns, where they lie in a checkpoint. */

import { join } from 'node:path';
import { needOf } from '../../advantage/estimators/index.js';
import type { CriticBackend } from '../../contract/backend.js';
import type { Turn } from '../../core/episode.js';
import { BackendError } from '../../core/errors.js';
import type { PolicyStep } from '../../core/events.js';
import type { ValueSample } from '../../core/sample.js';
import { mean, standardDeviation } from '../../core/statistics.js';
import { countTokensOf } from '../../loss/aggregate.js';
import type { CriticSettings } from '../../recipe/learning.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import type { Backend, OpenRun } from '../run-state.js';
import type { TurnAdvantage } from '../step/advantages.js';
import type { TurnsByPolicy } from '../step/turns-by-policy.js';
import { decayAfterRise, learningRateAt } from './learning-rate.js';
import { miniBatchesOf } from './mini-batches.js';
import { scoreTurns, trainingSample } from './training-samples.js';

/** Returns that differ by less are the same, and there is nothing to explain. */
const LEAST_SPREAD = 1e-6;

/** The directory of a policy's critic in a checkpoint; no policy can have this name. */
const directoryOf = (checkpoint: string, policy: string) => join(checkpoint, `${policy}.critic`);

/** The critic of each policy, by its name, where the estimator uses them. */
function criticsOf({ advantage, policies }: Recipe): [policy: string, settings: CriticSettings][] {
  if (needOf(advantage) !== 'values') return [];
  return Object.entries(policies).flatMap(([policy, { critic }]) => (critic === undefined ? [] : [[policy, critic]]));
}

function criticBackend(backend: Backend): CriticBackend {
  if (backend.critics === undefined) throw new BackendError('the backend has no critics');
  return backend.critics;
}

/** Gives every policy its critic, with the policy's weights as its trunk, or as a checkpoint left it. @throws CheckpointError */
export async function openCritics({ recipe, backend }: OpenRun, checkpoint: Checkpoint | undefined): Promise<void> {
  for (const [policy] of criticsOf(recipe)) {
    await criticBackend(backend).create(policy, policy);
    if (checkpoint !== undefined) await criticBackend(backend).load(policy, directoryOf(checkpoint.directory, policy));
  }
}

/** Writes the critics into a checkpoint's directory. */
export async function saveCritics({ recipe, backend, host }: OpenRun, checkpoint: string): Promise<void> {
  for (const [policy] of criticsOf(recipe)) {
    const directory = directoryOf(checkpoint, policy);
    await host.files.makeDirectory(directory);
    await criticBackend(backend).save(policy, directory);
  }
}

/** The value of each response token [R] of the turns of policies with a critic. */
export async function criticValues(
  { recipe, backend }: OpenRun,
  turns: TurnsByPolicy,
): Promise<ReadonlyMap<Turn, Float32Array>> {
  const values = await Promise.all(
    criticsOf(recipe).map(([policy]) =>
      scoreTurns(turns.get(policy) ?? [], (samples) => criticBackend(backend).values(policy, samples)),
    ),
  );
  return new Map(values.flatMap((each) => [...each]));
}

/** Steps at the beginning in which a policy waits for its critic; 0 without one. */
export function stepsAhead(recipe: Recipe, policy: string): number {
  return criticsOf(recipe).find(([name]) => name === policy)?.[1].aheadSteps ?? 0;
}

/** What an update of a critic did. */
export type CriticUpdate = NonNullable<PolicyStep['critic']>;

/** One update (or several epochs and mini-batches) of a policy's critic; undefined where the policy has none. */
export async function updateCritic(
  { recipe, backend }: OpenRun,
  step: number,
  policy: string,
  turns: readonly TurnAdvantage[],
  values: ReadonlyMap<Turn, Float32Array>,
): Promise<CriticUpdate | undefined> {
  const settings = criticsOf(recipe).find(([name]) => name === policy)?.[1];
  if (settings === undefined) return undefined;
  const { optimizer, warmupSteps, schedule, clipNorm, epochs, miniBatches, clip } = settings;
  const critics = criticBackend(backend);
  const samples = turns.map((turn) => valueSample(turn, values.get(turn.turn)));
  const rates = { learningRate: optimizer.learningRate, warmupSteps, schedule };
  const decay = decayAfterRise(rates, recipe.training.steps * epochs * miniBatches);
  const done: { loss: number; clipFraction: number; gradientNorm: number; learningRate: number }[] = [];
  for (let epoch = 0; epoch < epochs; epoch++) {
    const batches = miniBatchesOf(samples, miniBatches, ['critic', recipe.seed, step, epoch, policy]);
    for (const [i, batch] of batches.entries()) {
      const learningRate = learningRateAt(rates, ((step - 1) * epochs + epoch) * miniBatches + i + 1, decay);
      const normalizer = countTokensOf(batch);
      const learnt = critics.forwardBackward(policy, batch, { clip, normalizer });
      const stepped = critics.optimStep(policy, { optimizer: { ...optimizer, learningRate }, clipNorm });
      const [{ loss, clipFraction }, { gradientNorm }] = await Promise.all([learnt, stepped]);
      done.push({ loss, clipFraction, gradientNorm, learningRate });
    }
  }
  return {
    loss: mean(done.map(({ loss }) => loss)),
    clipFraction: mean(done.map(({ clipFraction }) => clipFraction)),
    gradientNorm: Math.max(...done.map(({ gradientNorm }) => gradientNorm)),
    learningRate: done.at(-1)?.learningRate ?? 0,
    explainedVariance: explainedVariance(turns, values),
  };
}

function valueSample({ turn, returns = [] }: TurnAdvantage, values: Float32Array = new Float32Array()): ValueSample {
  const { tokens, mask } = trainingSample(turn, 0);
  const row = (numbers: ArrayLike<number>) => {
    const all = new Float32Array(tokens.length);
    all.set(numbers, turn.prompt.length);
    return all;
  };
  return { tokens, mask, oldValues: row(values), returns: row(returns) };
}

/** 1 - Var(return - value) / Var(return) over tokens: 1 where the critic knew, 0 where it knew no more than the mean. */
function explainedVariance(turns: readonly TurnAdvantage[], values: ReadonlyMap<Turn, Float32Array>): number {
  const returns = turns.flatMap((turn) => turn.returns ?? []);
  const errors = turns.flatMap(({ turn, returns = [] }) =>
    returns.map((each, t) => each - (values.get(turn)?.[t] ?? 0)),
  );
  const spread = standardDeviation(returns);
  return spread < LEAST_SPREAD ? 0 : 1 - (standardDeviation(errors) / spread) ** 2;
}
