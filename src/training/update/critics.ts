/** Critics: the values they predict, how they learn from returns, where they lie in a checkpoint. */

import { join } from 'node:path';
import { needOf } from '../../advantage/estimators/index.js';
import type { CriticHandle, ValueLossResult } from '../../contract/handles.js';
import type { OptimStepResult } from '../../contract/optimizer-settings.js';
import type { Turn } from '../../core/episode.js';
import type { PolicyStep } from '../../core/events.js';
import type { ValueSample } from '../../core/sample.js';
import { mean, standardDeviation } from '../../core/statistics.js';
import { countTokensOf } from '../../loss/aggregate.js';
import type { CriticSettings } from '../../recipe/learning.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import { type OpenRun, policyNamed, type TrainingRun } from '../run-state.js';
import type { TurnAdvantage } from '../step/advantages.js';
import type { TurnsByPolicy } from '../step/turns-by-policy.js';
import { decayAfterRise, learningRateAt } from './learning-rate.js';
import { miniBatchesOf } from './mini-batches.js';
import { scoreTurns, trainingSample } from './training-samples.js';
import { largestNorm } from './update-result.js';

/** Returns that differ by less are the same, and there is nothing to explain. */
const LEAST_SPREAD = 1e-6;

/** The directory of a policy's critic in a checkpoint; no policy can have this name. */
const directoryOf = (checkpoint: string, policy: string) => join(checkpoint, `${policy}.critic`);

/** The critic of each policy, by its name, where the estimator uses them. */
function criticsOf({ advantage, policies }: Recipe): [policy: string, settings: CriticSettings][] {
  if (needOf(advantage) !== 'values') return [];
  return Object.entries(policies).flatMap(([policy, { critic }]) => (critic === undefined ? [] : [[policy, critic]]));
}

/** Gives every policy its critic, with the policy's weights as its trunk, or as a checkpoint left it. @throws CheckpointError */
export async function openCritics(
  run: OpenRun,
  checkpoint: Checkpoint | undefined,
): Promise<ReadonlyMap<string, CriticHandle>> {
  const critics = new Map<string, CriticHandle>();
  for (const [name] of criticsOf(run.recipe)) {
    const directory = checkpoint && directoryOf(checkpoint.directory, name);
    const weights = { type: 'like', policy: policyNamed(run, name), directory } as const;
    critics.set(name, await run.backend.open(weights, 'critic', `${name}'s critic`));
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
  turns: TurnsByPolicy,
): Promise<ReadonlyMap<Turn, Float32Array>> {
  const values = await Promise.all(
    Array.from(critics, ([policy, critic]) => scoreTurns(turns.get(policy) ?? [], (samples) => critic.values(samples))),
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
  { recipe, critics, host }: TrainingRun,
  step: number,
  policy: string,
  turns: readonly TurnAdvantage[],
  values: ReadonlyMap<Turn, Float32Array>,
): Promise<CriticUpdate | undefined> {
  const settings = criticsOf(recipe).find(([name]) => name === policy)?.[1];
  const critic = critics.get(policy);
  if (settings === undefined || critic === undefined) return undefined;
  const { optimizer, warmupSteps, schedule, clipNorm, epochs, miniBatches, clip } = settings;
  const samples = turns.map((turn) => valueSample(turn, values.get(turn.turn)));
  const rates = { learningRate: optimizer.learningRate, warmupSteps, schedule };
  const decay = decayAfterRise(rates, recipe.training.steps * epochs * miniBatches);
  const losses: ValueLossResult[] = [];
  const optimSteps: OptimStepResult[] = [];
  let learningRate = 0;
  for (let epoch = 0; epoch < epochs; epoch++) {
    const batches = miniBatchesOf(samples, miniBatches, ['critic', recipe.seed, step, epoch, policy]);
    for (const [i, batch] of batches.entries()) {
      learningRate = learningRateAt(rates, ((step - 1) * epochs + epoch) * miniBatches + i + 1, decay);
      const normalizer = countTokensOf(batch);
      const learnt = critic.forwardBackward(batch, { clip, normalizer });
      const stepped = critic.optimStep({ optimizer: { ...optimizer, learningRate }, clipNorm });
      const [loss, optimStep] = await Promise.all([learnt, stepped]);
      losses.push(loss);
      optimSteps.push(optimStep);
    }
  }
  if (optimSteps.some(({ applied }) => !applied))
    host.warn(
      'critic',
      `step ${step}: a gradient of the critic of '${policy}' was not a number; that update was not made`,
    );
  return {
    loss: mean(losses.map(({ loss }) => loss)),
    clipFraction: mean(losses.map(({ clipFraction }) => clipFraction)),
    gradientNorm: largestNorm(optimSteps) ?? Number.NaN, // as the event has it
    learningRate,
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
