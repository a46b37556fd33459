/** The update of a critic, which learns from the returns of its policy's turns. */
import type { ValueLossResult } from '../../contract/handles.js';
import type { OptimStepResult } from '../../contract/optimizer-settings.js';
import type { Turn } from '../../core/episode.js';
import type { PolicyStep } from '../../core/events.js';
import type { ValueSample } from '../../core/sample.js';
import { mean, standardDeviation } from '../../core/statistics.js';
import { countTokensOf } from '../../loss/aggregate.js';
import type { TrainingRun } from '../run-state.js';
import type { TurnAdvantage } from '../step/advantages.js';
import { criticSettings } from './critics.js';
import { updatesOf } from './mini-batches.js';
import { trainingSample } from './training-samples.js';
import { largestNorm } from './update-result.js';

/** Returns that differ by less are the same, and there is nothing to explain. */
const LEAST_SPREAD = 1e-6;

/** The result of a critic's update. */
export type CriticUpdate = NonNullable<PolicyStep['critic']>;

/** One update (or several epochs and mini-batches) of a policy's critic; undefined where the policy has none. */
export async function updateCritic(
  { recipe, critics, host }: TrainingRun,
  step: number,
  policy: string,
  chains: readonly (readonly TurnAdvantage[])[],
  values: ReadonlyMap<Turn, Float32Array>,
): Promise<CriticUpdate | undefined> {
  const settings = criticSettings(recipe, policy);
  const critic = critics.get(policy);
  if (settings === undefined || critic === undefined) return undefined;
  const { optimizer, clipNorm, clip } = settings;
  const samples = chains.map((chain) => valueSample(chain, values));
  const position = { step, steps: recipe.training.steps };
  const keyOf = (epoch: number) => ['critic', recipe.seed, step, epoch, policy];
  const losses: ValueLossResult[] = [];
  const optimSteps: OptimStepResult[] = [];
  let lastRate = 0;
  for (const { batch, learningRate } of updatesOf(samples, settings, position, keyOf)) {
    const normalizer = countTokensOf(batch);
    const learnt = critic.forwardBackward(batch, { clip, normalizer });
    const stepped = critic.optimStep({ optimizer: { ...optimizer, learningRate }, clipNorm });
    const [loss, optimStep] = await Promise.all([learnt, stepped]);
    losses.push(loss);
    optimSteps.push(optimStep);
    lastRate = learningRate;
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
    learningRate: lastRate,
    explainedVariance: explainedVariance(chains.flat(), values),
  };
}

function valueSample(chain: readonly TurnAdvantage[], values: ReadonlyMap<Turn, Float32Array>): ValueSample {
  const { tokens, mask } = trainingSample(chain);
  const row = (numbersOf: (turn: TurnAdvantage) => ArrayLike<number> | undefined) => {
    const all = new Float32Array(tokens.length);
    for (const each of chain) all.set(numbersOf(each) ?? [], each.turn.prompt.length);
    return all;
  };
  return { tokens, mask, oldValues: row(({ turn }) => values.get(turn)), returns: row(({ returns }) => returns) };
}

/**
 * 1 - Var(return - value) / Var(return) over tokens: 1 where the critic knew, 0 where it knew no more than the mean.
 */
function explainedVariance(turns: readonly TurnAdvantage[], values: ReadonlyMap<Turn, Float32Array>): number {
  const returns = turns.flatMap((turn) => turn.returns ?? []);
  const errors = turns.flatMap(({ turn, returns = [] }) =>
    returns.map((each, t) => each - (values.get(turn)?.[t] ?? 0)),
  );
  const spread = standardDeviation(returns);
  return spread < LEAST_SPREAD ? 0 : 1 - (standardDeviation(errors) / spread) ** 2;
}
