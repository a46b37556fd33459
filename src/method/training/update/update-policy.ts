/** The update of one policy: epochs of mini-batches, each with a gradient and a step of the optimiser. */

import type { ForwardBackwardResult, OptimStepResult } from '@drmas/engine/contract';
import {
  correctionOf,
  type ForwardBackwardOptions,
  normalizerOf,
  ownMetrics,
  type SampleRatios,
} from '@drmas/engine/loss';
import { largest, mean, weightedMean } from '@drmas/engine/math';
import type { TrainingSample } from '@drmas/engine/nouns';
import { type Learner, stepsAhead } from '../run/learner.js';
import type { Coefficients } from '../run/signal.js';
import { updatesOf } from './mini-batches.js';
import { klTerm } from './settle-kl.js';
import { type AgentUpdate, LOSS_TERMS, largestNorm, outcomeOf, type PolicyUpdate } from './update-result.js';

interface MiniBatchUpdate {
  readonly gradients: readonly {
    readonly agent: string;
    readonly samples: readonly TrainingSample[];
    /** The divisor of the agent's loss, which belongs to the whole mini-batch. */
    readonly normalizer: number;
    /** The normalizer of the agent's samples alone, by which the loss's own metrics weigh. */
    readonly weight: number;
    readonly result: ForwardBackwardResult;
  }[];
  readonly optimStep: OptimStepResult;
}

/** A policy's update, with the ratios of each sample's tokens in the last pass over them, if they are kept. */
interface SampledUpdate {
  readonly update: PolicyUpdate;
  readonly ratios: SampleRatios;
}

/** The position of an update in the run. It decides the learning rate and how an epoch divides the samples. */
export interface UpdatePosition {
  readonly seed: number;
  readonly step: number;
  readonly steps: number;
}

export interface CountsUpdates {
  /** The number of updates of a model so far. @param perStep Its updates in a step */
  of(model: string, perStep: number): number;
  set(model: string, count: number): void;
}

export interface SpikeLimits {
  /** The norm above which a policy's update is not made. Undefined if the rule allows it. */
  skipAboveNorm(policy: string): number | undefined;
}

interface PolicyUpdateOptions {
  readonly made: CountsUpdates;
  readonly kl: Coefficients;
  readonly watch: SpikeLimits;
  readonly keepRatios: boolean;
  /** The number of published versions that stay playable. */
  readonly versions: number;
}

export async function updatePolicy(
  learner: Learner,
  { seed, step, steps }: UpdatePosition,
  played: readonly TrainingSample[],
  options: PolicyUpdateOptions,
): Promise<SampledUpdate> {
  const { name, handle, settings } = learner;
  const samples = await withProximal(learner, played);
  const ahead = stepsAhead(learner);
  const made = options.made.of(name, settings.epochs * settings.miniBatches);
  const position = { step: step - ahead, steps: steps - ahead, made };
  const keyOf = (epoch: number) => [seed, step, epoch, name];
  const updates: MiniBatchUpdate[] = [];
  const leftOut = () => updates.filter(({ optimStep }) => optimStep.applied === false).length;
  let lastRate = settings.optimizer.learningRate;
  for (const { batch, ...scheduled } of updatesOf(samples, settings, { ...position, leftOut }, keyOf)) {
    updates.push(await updateOnMiniBatch(learner, batch, scheduled, options));
    lastRate = scheduled.learningRate;
  }
  options.made.set(name, made + updates.length - leftOut());
  await handle.publish(options.versions);
  const ratios = new Map(
    updates.flatMap(({ gradients }) =>
      gradients.flatMap(({ samples: sent, result }) => sent.map((sample, i) => [sample, result.ratios?.[i]] as const)),
    ),
  );
  const normalizerOfStep = (agent: string) => settings.epochs * objectiveOptions(learner, samples, agent).normalizer;
  return {
    update: policyUpdate(updates, lastRate, normalizerOfStep),
    ratios: samples.map((sample) => ratios.get(sample)),
  };
}

async function updateOnMiniBatch(
  learner: Learner,
  batch: readonly TrainingSample[],
  { learningRate, entropyShare }: { readonly learningRate: number; readonly entropyShare: number },
  { kl, watch, keepRatios }: PolicyUpdateOptions,
): Promise<MiniBatchUpdate> {
  const { name, handle, capabilities } = learner;
  const { optimizer, clipNorm, agentAdapters } = learner.settings;
  const skipAboveNorm = capabilities.gradientNorms === 'before-update' ? watch.skipAboveNorm(name) : undefined;
  const kept: Pick<ForwardBackwardOptions, 'keepRatios'> = keepRatios ? { keepRatios } : {};
  const agents = [...new Set(batch.map(({ agent }) => agent))];
  // Submitted one after the other without waiting. The engine computes them in order while this code prepares the next.
  const parts = agents.map((agent) => {
    const options = { ...objectiveOptions(learner, batch, agent, entropyShare), ...klTerm(learner, kl), ...kept };
    const samples = batch.filter((sample) => sample.agent === agent);
    return { agent, samples, options, weight: objectiveOptions(learner, samples, agent).normalizer };
  });
  const submitted = parts.map(({ samples, options }) => handle.forwardBackward(samples, options));
  const stepped = handle.optimStep({
    optimizer: { ...optimizer, learningRate },
    clipNorm,
    ...(skipAboveNorm === undefined ? {} : { skipAboveNorm }),
    ...(agentAdapters === undefined ? {} : { partRates: { trunk: agentAdapters.trunkRate, adapters: 1 } }),
  });
  const [results, optimStep] = await Promise.all([Promise.all(submitted), stepped]);
  return {
    gradients: parts.map(({ options: { normalizer }, ...part }, k) => {
      return { ...part, normalizer, result: results[k] as ForwardBackwardResult };
    }),
    optimStep,
  };
}

/** @param normalizerOfStep The sum of the normalizers of an agent's loss over all mini-batches of all epochs */
function policyUpdate(
  updates: readonly MiniBatchUpdate[],
  learningRate: number,
  normalizerOfStep: (agent: string) => number,
): PolicyUpdate {
  const gradients = updates.flatMap((update) => update.gradients);
  const steps = updates.map(({ optimStep }) => optimStep);
  const names = [...new Set(gradients.map(({ agent }) => agent))];
  const agreement = agreementOf(updates);
  const agents = names.map((name) => {
    const parts = gradients.filter(({ agent }) => agent === name);
    const first = updates[0]?.gradients.find(({ agent }) => agent === name)?.result.metrics.logprobGap;
    const update = {
      ...agentUpdate(parts, normalizerOfStep(name)),
      ...(first === undefined ? {} : { logprobGap: first }),
      ...(agreement === undefined ? {} : { agreement }),
    };
    if (names.length > 1 || update.gradientNorm !== undefined) return [name, update] as const;
    // A backend that reports only the whole gradient's norm has reported the norm of this agent, the policy's only
    // agent.
    return [name, { ...update, gradientNorm: meanNorm(steps.map(({ norm }) => norm)) }] as const;
  });
  return {
    gradientNorm: largestNorm(steps),
    learningRate,
    outcome: outcomeOf(steps),
    agents: Object.fromEntries(agents),
  };
}

function meanNorm(norms: readonly (number | undefined)[]): number | undefined {
  const numbers = norms.filter((norm) => norm !== undefined);
  return numbers.length < norms.length ? undefined : mean(numbers);
}

/**
 * An agent's part in the updates. Its metrics are over all tokens that the mini-batches measured, and its loss is
 * divided as if all mini-batches were one, so that they do not depend on the number of mini-batches.
 */
function agentUpdate(parts: MiniBatchUpdate['gradients'], normalizerOfStep: number): Omit<AgentUpdate, 'logprobGap'> {
  const metrics = parts.map(({ result }) => result.metrics);
  const over = (name: string, by: 'tokens' | 'units' = 'tokens') =>
    weightedMean(metrics.map((each) => [each[name], each[by]]));
  const names = [...new Set(metrics.flatMap((each) => Object.keys(ownMetrics(each))))];
  const own = names.flatMap((name) => {
    const value = weightedMean(parts.map(({ result, weight }) => [result.metrics[name], weight]));
    return value === undefined ? [] : [[name, value] as const];
  });
  const deviations = metrics.flatMap(({ maxRatioDeviation }) => maxRatioDeviation ?? []);
  const measured = {
    entropy: over('entropy'),
    clipFraction: over('clipFraction', 'units'),
    kl: over('approxKl'),
    maxRatioDeviation: deviations.length === 0 ? undefined : largest(deviations),
    ...Object.fromEntries(LOSS_TERMS.map((name) => [name, over(name)])),
  };
  const loss = parts.reduce((sum, { normalizer, result }) => sum + normalizer * result.loss, 0);
  return {
    gradientNorm: meanNorm(parts.map(({ result }) => result.gradientNorm)),
    loss: normalizerOfStep === 0 ? loss : loss / normalizerOfStep,
    tokens: parts.reduce((sum, { result }) => sum + result.tokens, 0),
    ...Object.fromEntries(Object.entries(measured).filter(([, value]) => value !== undefined)),
    lossMetrics: Object.fromEntries(own),
  };
}

// The objective of a policy's updates: the options and the log-probs that its loss needs.

export function objectiveOptions(
  { loss, settings: { entropyCoefficient }, agents }: Learner,
  miniBatch: readonly TrainingSample[],
  agent: string,
  entropyShare = 1,
): ForwardBackwardOptions {
  const { maxTokens } = (agents[agent] as Learner['agents'][string]).sampling;
  return {
    loss,
    normalizer: normalizerOf(miniBatch, loss, maxTokens),
    ...(entropyCoefficient === 0 ? {} : { entropyCoefficient: entropyCoefficient * entropyShare }),
  };
}

/** The samples with their log-probs under the policy before its update, if the loss needs them. */
async function withProximal(
  { handle, loss }: Pick<Learner, 'handle' | 'loss'>,
  samples: readonly TrainingSample[],
): Promise<readonly TrainingSample[]> {
  if (correctionOf(loss) === undefined) return samples;
  const rows = await handle.logprobs(samples);
  return samples.map((sample, i) => ({ ...sample, proximalLogprobs: rows[i] as Float32Array }));
}

interface SharedUpdate {
  readonly gradients: readonly { readonly result: Pick<ForwardBackwardResult, 'gradientNorm'> }[];
  readonly optimStep: Pick<OptimStepResult, 'norm'>;
}

/**
 * How much the gradients of one policy's agents agree: the mean cosine between the gradients of two agents, weighted by
 * the product of their norms. The norms are enough to compute it, because |g1 + g2 + ...|^2 is the sum of all |gi|^2
 * and of all gi.gj. Below 0 the gradients conflict (Yu et al. 2020, "Gradient Surgery for Multi-Task Learning", arXiv
 * 2001.06782, definition 1).
 * @returns From -1 to 1, averaged over the updates. Undefined for an agent alone, or if a norm is not known
 */
export function agreementOf(updates: readonly SharedUpdate[]): number | undefined {
  const cosines = updates.flatMap(({ gradients, optimStep: { norm } }) => {
    const norms = gradients.flatMap(({ result: { gradientNorm } }) => gradientNorm ?? []);
    if (norm === undefined || norms.length < gradients.length) return [];
    const sum = norms.reduce((total, each) => total + each, 0);
    const squares = norms.reduce((total, each) => total + each ** 2, 0);
    const products = sum ** 2 - squares; // over all pairs, each counted twice
    const cosine = (norm ** 2 - squares) / products;
    return norms.length > 1 && products > 0 && Number.isFinite(cosine) ? [Math.max(-1, Math.min(1, cosine))] : [];
  });
  return cosines.length === 0 ? undefined : mean(cosines);
}
