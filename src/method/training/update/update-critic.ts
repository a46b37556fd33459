/** The update of a critic, which learns the returns of its policy's turns. */

import type { OptimStepResult, ValueLossResult } from '@drmas/engine/contract';
import type { PolicyStep } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import { countTokensOf } from '@drmas/engine/loss';
import { standardDeviation, weightedMean } from '@drmas/engine/math';
import type { ValueSample } from '@drmas/engine/nouns';
import type { TurnAdvantage } from '../advantages/advantages.js';
import type { Learner } from '../run/learner.js';
import type { SignalsByTurn } from '../run/signal.js';
import { trainingSample } from '../samples/training-samples.js';
import { updatesOf } from './mini-batches.js';
import type { CountsUpdates, UpdatePosition } from './update-policy.js';
import { largestNorm } from './update-result.js';

/** If returns differ by less, they are equal, and there is no variance to explain. */
const LEAST_SPREAD = 1e-6;

export type CriticUpdate = NonNullable<PolicyStep['critic']>;

/**
 * One update (or several epochs and mini-batches) of a policy's critic.
 * @param options.warn Receives a warning for a gradient that was not a number
 * @returns undefined if the policy has no critic, or no turn with a token
 */
export async function updateCritic(
  { name, critic }: Pick<Learner, 'name' | 'critic'>,
  { seed, step, steps }: UpdatePosition,
  chains: readonly (readonly TurnAdvantage[])[],
  signals: SignalsByTurn,
  { counts, warn }: { readonly counts: CountsUpdates; readonly warn: Host['warn'] },
): Promise<CriticUpdate | undefined> {
  if (critic === undefined) return undefined;
  const { handle, settings } = critic;
  const { optimizer, clipNorm, clip } = settings;
  const samples = chains.map((chain) => valueSample(chain, signals));
  const model = `${name}.critic`; // no policy can have this name
  const made = counts.of(model, settings.epochs * settings.miniBatches);
  const keyOf = (epoch: number) => ['critic', seed, step, epoch, name];
  const losses: (ValueLossResult & { readonly tokens: number })[] = [];
  const optimSteps: OptimStepResult[] = [];
  const leftOut = () => optimSteps.filter(({ applied }) => applied === false).length;
  const position = { step, steps, made, leftOut };
  let lastRate = 0;
  for (const { batch, learningRate } of updatesOf(samples, settings, position, keyOf)) {
    const normalizer = countTokensOf(batch);
    const learnt = handle.forwardBackward(batch, { clip, normalizer });
    const stepped = handle.optimStep({ optimizer: { ...optimizer, learningRate }, clipNorm });
    const [loss, optimStep] = await Promise.all([learnt, stepped]);
    losses.push({ ...loss, tokens: normalizer });
    optimSteps.push(optimStep);
    lastRate = learningRate;
  }
  counts.set(model, made + optimSteps.length - leftOut());
  if (optimSteps.some(({ applied }) => !applied))
    warn('critic', `step ${step}: a gradient of the critic of '${name}' was not a number; that update was not made`);
  const loss = weightedMean(losses.map(({ loss, tokens }) => [loss, tokens]));
  if (loss === undefined) return undefined;
  const explained = explainedVariance(chains.flat(), signals);
  return {
    loss,
    clipFraction: weightedMean(losses.map(({ clipFraction, tokens }) => [clipFraction, tokens])) ?? 0,
    gradientNorm: largestNorm(optimSteps) ?? Number.NaN, // the form in the event
    learningRate: lastRate,
    ...(explained === undefined ? {} : { explainedVariance: explained }),
  };
}

function valueSample(chain: readonly TurnAdvantage[], signals: SignalsByTurn): ValueSample {
  const { tokens, mask } = trainingSample(chain);
  const row = (numbersOf: (turn: TurnAdvantage) => ArrayLike<number> | undefined) => {
    const all = new Float32Array(tokens.length);
    for (const each of chain) all.set(numbersOf(each) ?? [], each.turn.prompt.length);
    return all;
  };
  const oldValues = row(({ turn }) => signals.get(turn)?.values);
  return { tokens, mask, oldValues, returns: row(({ returns }) => returns) };
}

/**
 * 1 - Var(return - value) / Var(return) over tokens: 1 for a critic that predicts each return, 0 if it predicts their
 * mean. Undefined if the returns do not vary.
 */
export function explainedVariance(turns: readonly TurnAdvantage[], signals: SignalsByTurn): number | undefined {
  const returns = turns.flatMap((turn) => turn.returns ?? []);
  const errors = turns.flatMap(({ turn, returns = [] }) => {
    const values = signals.get(turn)?.values;
    return returns.map((each, t) => each - (values?.[t] ?? 0));
  });
  const spread = standardDeviation(returns);
  return spread < LEAST_SPREAD ? undefined : 1 - (standardDeviation(errors) / spread) ** 2;
}
