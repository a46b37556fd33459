/** The update of one policy: epochs of mini-batches, each with a gradient and a step of the optimiser. */

import { mean } from '../../../base/math.js';
import type { TrainingSample } from '../../../base/nouns.js';
import type { ForwardBackwardResult, OptimStepResult } from '../../../engine/contract.js';
import type { ForwardBackwardOptions, SampleRatios } from '../../../engine/loss.js';
import { ownMetrics } from '../../../engine/loss.js';
import { type Learner, stepsAhead } from '../run/learner.js';
import type { Coefficients } from '../run/signal.js';
import { agreementOf } from './agreement.js';
import { updatesOf } from './mini-batches.js';
import { objectiveOptions, withProximal } from './policy-objective.js';
import { klTerm } from './settle-kl.js';
import { type AgentUpdate, LOSS_TERMS, largestNorm, outcomeOf, type PolicyUpdate } from './update-result.js';

/** The result of the update with one mini-batch. */
interface MiniBatchUpdate {
  readonly gradients: readonly {
    readonly agent: string;
    readonly samples: readonly TrainingSample[];
    readonly result: ForwardBackwardResult;
  }[];
  readonly optimStep: OptimStepResult;
}

/** A policy's update, with the ratios of each sample's tokens in the last pass over them, if they are kept. */
export interface SampledUpdate {
  readonly update: PolicyUpdate;
  readonly ratios: SampleRatios;
}

/** The position of an update in the run. It decides the learning rate and how an epoch divides the samples. */
export interface UpdatePosition {
  readonly seed: number;
  readonly step: number;
  /** The number of steps of the run. */
  readonly steps: number;
}

/** The limit of a gradient norm. */
export interface SpikeLimits {
  /** The norm above which a policy's update is not made. Undefined if the rule allows it. */
  skipAboveNorm(policy: string): number | undefined;
}

export interface PolicyUpdateOptions {
  readonly kl: Coefficients;
  readonly watch: SpikeLimits;
  readonly keepRatios: boolean;
  /** The number of published versions that stay playable. */
  readonly versions: number;
}

/** Updates a policy on the samples of a step and publishes its new weights to the sampler. */
export async function updatePolicy(
  learner: Learner,
  { seed, step, steps }: UpdatePosition,
  played: readonly TrainingSample[],
  options: PolicyUpdateOptions,
): Promise<SampledUpdate> {
  const { name, handle, settings } = learner;
  const samples = await withProximal(learner, played);
  const ahead = stepsAhead(learner);
  const position = { step: step - ahead, steps: steps - ahead };
  const keyOf = (epoch: number) => [seed, step, epoch, name];
  const updates: MiniBatchUpdate[] = [];
  let lastRate = settings.optimizer.learningRate;
  for (const { batch, learningRate } of updatesOf(samples, settings, position, keyOf)) {
    updates.push(await updateOnMiniBatch(learner, batch, learningRate, options));
    lastRate = learningRate;
  }
  await handle.publish(options.versions);
  const ratios = new Map(
    updates.flatMap(({ gradients }) =>
      gradients.flatMap(({ samples: sent, result }) => sent.map((sample, i) => [sample, result.ratios?.[i]] as const)),
    ),
  );
  return { update: policyUpdate(updates, lastRate), ratios: samples.map((sample) => ratios.get(sample)) };
}

async function updateOnMiniBatch(
  learner: Learner,
  batch: readonly TrainingSample[],
  learningRate: number,
  { kl, watch, keepRatios }: PolicyUpdateOptions,
): Promise<MiniBatchUpdate> {
  const { name, handle, capabilities } = learner;
  const { optimizer, clipNorm } = learner.settings;
  const skipAboveNorm = capabilities.gradientNorms === 'before-update' ? watch.skipAboveNorm(name) : undefined;
  const kept: Pick<ForwardBackwardOptions, 'keepRatios'> = keepRatios ? { keepRatios } : {};
  const agents = [...new Set(batch.map(({ agent }) => agent))];
  // Submitted one after the other without waiting. The engine computes them in order while this code prepares the next.
  const parts = agents.map((agent) => ({ agent, samples: batch.filter((sample) => sample.agent === agent) }));
  const submitted = parts.map(({ agent, samples }) =>
    handle.forwardBackward(samples, {
      ...objectiveOptions(learner, batch, agent),
      ...klTerm(learner, kl),
      ...kept,
    }),
  );
  const stepped = handle.optimStep({
    optimizer: { ...optimizer, learningRate },
    clipNorm,
    ...(skipAboveNorm === undefined ? {} : { skipAboveNorm }),
  });
  const [results, optimStep] = await Promise.all([Promise.all(submitted), stepped]);
  return {
    gradients: parts.map((part, k) => ({ ...part, result: results[k] as ForwardBackwardResult })),
    optimStep,
  };
}

function policyUpdate(updates: readonly MiniBatchUpdate[], learningRate: number): PolicyUpdate {
  const gradients = updates.flatMap((update) => update.gradients);
  const steps = updates.map(({ optimStep }) => optimStep);
  const names = [...new Set(gradients.map(({ agent }) => agent))];
  const agreement = agreementOf(updates);
  const agents = names.map((name) => {
    const part = agentUpdate(gradients.filter(({ agent }) => agent === name).map(({ result }) => result));
    const update = agreement === undefined ? part : { ...part, agreement };
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

/** The mean of norms. Undefined if one of them was not reported. */
function meanNorm(norms: readonly (number | undefined)[]): number | undefined {
  const numbers = norms.filter((norm) => norm !== undefined);
  return numbers.length < norms.length ? undefined : mean(numbers);
}

/** An agent's part in the updates, averaged over the updates. */
function agentUpdate(results: readonly ForwardBackwardResult[]): AgentUpdate {
  const over = (pick: (result: ForwardBackwardResult) => number) => mean(results.map(pick));
  return {
    gradientNorm: meanNorm(results.map(({ gradientNorm }) => gradientNorm)),
    loss: over(({ loss }) => loss),
    entropy: over(({ metrics }) => metrics.entropy),
    clipFraction: over(({ metrics }) => metrics.clipFraction),
    kl: over(({ metrics }) => metrics.approxKl),
    maxRatioDeviation: results.reduce((most, { metrics }) => Math.max(most, metrics.maxRatioDeviation), 0),
    logprobGap: results[0]?.metrics.logprobGap ?? 0,
    tokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
    ...Object.fromEntries(
      LOSS_TERMS.flatMap((name) => {
        const values = results.flatMap(({ metrics }) => metrics[name] ?? []);
        return values.length === 0 ? [] : [[name, mean(values)]];
      }),
    ),
    lossMetrics: meanOfEach(results.map(({ metrics }) => ownMetrics(metrics))),
  };
}

/** The mean of each number over the records that have it. */
function meanOfEach(records: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const names = [...new Set(records.flatMap(Object.keys))];
  return Object.fromEntries(names.map((name) => [name, mean(records.flatMap((record) => record[name] ?? []))]));
}
