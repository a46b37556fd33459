/** Training of one policy: gradients are collected here, and sent with their update. */

import type { ForwardBackwardResult, OptimStepResult, OptimStepSettings } from '@drmas/engine/contract';
import { BackendError } from '@drmas/engine/errors';
import { type ForwardBackwardOptions, hasAdvantage, type Objective, objectiveOf } from '@drmas/engine/loss';
import type { AdamWSettings } from '@drmas/engine/model';
import type { TrainingSample } from '@drmas/engine/nouns';
import type { RemoteModel } from './remote-model.js';
import { gradientPath, keepsOrder, type ServerProfile } from './server-profile.js';
import { type PassInput, stepAnswer } from './wire/answers.js';
import { chunksOf, finite, type GradientRow, gradientPass, type Limits, requireSample } from './wire/datum.js';
import { nativePass, rowsOf, score, sendPasses, settled } from './wire/passes.js';
import { isKind, TinkerError } from './wire/tinker-failure.js';

/** The part of an update that one call of `forwardBackward` computes. */
interface Contribution {
  /** Undefined if the server's numbers were not finite: the step has failed. */
  readonly rows: readonly GradientRow[] | undefined;
  /** Generation of the model that already has the gradient. */
  readonly sentTo: number | undefined;
  readonly result: ForwardBackwardResult;
}

const FAILED_STEP: OptimStepResult = { applied: false, why: 'failed' };

export class RemoteTrainer {
  readonly #model: RemoteModel;
  readonly #profile: ServerProfile;
  readonly #limits: Limits;
  #contributions: Promise<Contribution>[] = [];

  constructor(model: RemoteModel, profile: ServerProfile, limits: Limits) {
    this.#model = model;
    this.#profile = profile;
    this.#limits = limits;
  }

  /** Log-probs of the masked tokens, 0 elsewhere: [T] a sample. */
  async logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    for (const sample of samples) requireSample(sample, this.#limits);
    const rows = await this.#score(samples);
    return rows.map((row, i) => written(row, samples[i] as TrainingSample));
  }

  /** The gradient reaches the server with the next update, or at once as a loss of its own. */
  async forwardBackward(
    samples: readonly TrainingSample[],
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult> {
    for (const sample of samples) requireSample(sample, this.#limits);
    const objective = objectiveOf(samples, options);
    // The first of identical samples stands for all, even if only a later one has an advantage.
    const standing = new Set(objective.samples);
    const learning = samples.filter((sample) => standing.has(sample) || hasAdvantage(sample.mask, sample.advantages));
    const native = learning.length > 0 ? nativePass(learning, options, this.#profile) : undefined;
    const contribution = (
      native === undefined ? this.#exact(objective) : this.#native(native, learning, objective)
    ).catch((error: unknown) => {
      if (isKind(error, 'failed', 'malformed')) return FAILED;
      throw error;
    });
    this.#contributions.push(contribution);
    return (await contribution).result;
  }

  /** Any loss of the written tokens' log-probs: gets the log-probs first, then sends its gradient. */
  async #exact(objective: Objective, options?: { readonly waiting: boolean }): Promise<Contribution> {
    const logprobs = await this.#score(objective.samples, options);
    return { ...contributionOf(objective, logprobs), sentTo: undefined };
  }

  /** A loss that the server has: one pass instead of two. */
  async #native(pass: PassInput, samples: readonly TrainingSample[], objective: Objective): Promise<Contribution> {
    const model = this.#model;
    let sentTo = model.generation;
    const chunks = chunksOf(samples);
    try {
      const submitted = await model.inOrder(() => {
        sentTo = model.generation;
        return sendPasses(model, partsOf(pass, chunks));
      });
      const rows = await rowsOf(submitted, chunks);
      // Identical samples appear once in the objective, as the first of them.
      const logprobs = new Map(samples.map((sample, i) => [sample, rows[i] as Float32Array]));
      const distinct = objective.samples.map((sample) => logprobs.get(sample) as Float32Array);
      return { ...contributionOf(objective, distinct), sentTo };
    } catch (error) {
      if (!recoverable(error)) throw error;
      await model.recover(sentTo, error);
      return this.#exact(objective, { waiting: true });
    }
  }

  /** If numbers of a model are not finite, the model is made again, once. */
  async #score(
    samples: readonly { readonly tokens: Int32Array }[],
    options: { readonly waiting: boolean } = { waiting: false },
  ): Promise<Float32Array[]> {
    const { generation } = this.#model;
    try {
      return await score(this.#model, this.#profile, samples, options);
    } catch (error) {
      if (!isKind(error, 'failed', 'malformed') || generation !== this.#model.generation) throw error;
      await this.#model.recover(generation, error);
      return score(this.#model, this.#profile, samples, { waiting: true });
    }
  }

  /**
   * Sends the collected gradients, then the update. If the update failed, or may have failed, it is undone: the model
   * is made again from the weights last saved. If no gradients were collected, there is no update.
   */
  async optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    const collected = this.#contributions;
    this.#contributions = [];
    let { generation } = this.#model;
    try {
      const finish = await this.#model.inOrder(async () => {
        const contributions = await settled(collected);
        generation = this.#model.generation;
        return this.#send(contributions, settings);
      });
      return await finish();
    } catch (error) {
      if (!recoverable(error)) throw error;
      await this.#model.recover(generation, error);
      return FAILED_STEP;
    }
  }

  /**
   * Drops the collected gradients. If the server already has a part of them, the model is made again from its present
   * weights and optimiser, because only a new model is without that part.
   */
  async discardGradient(): Promise<void> {
    const collected = this.#contributions;
    this.#contributions = [];
    const outcomes = await Promise.allSettled(collected);
    const { generation } = this.#model;
    const isThere = outcomes.some(
      ({ status, ...outcome }) => 'value' in outcome && outcome.value.sentTo === generation,
    );
    if (isThere) await this.#model.replace(await this.#model.save(), { optimizer: true });
  }

  async #send(
    contributions: readonly Contribution[],
    settings: OptimStepSettings,
  ): Promise<() => Promise<OptimStepResult>> {
    const model = this.#model;
    const there = contributions.filter(({ sentTo }) => sentTo === model.generation);
    const rows = contributions.flatMap((each) => (there.includes(each) ? [] : [each.rows ?? []]));
    const failed = contributions.some((each) => each.rows === undefined);
    if (failed || !rows.flat().every(hasNumbers)) {
      // A gradient that is already on the server can only be removed with the model.
      if (there.length > 0) throw new TinkerError('failed', 'a part of the gradient is not finite');
      return async () => ({ applied: false, why: failed ? 'failed' : 'not-finite' });
    }
    // Each call's rows are sent separately, so that gradients add up in the same order as in the embedded engine.
    const parts = rows.map((part) => part.filter(({ gradient }) => gradient.some((g) => g !== 0)));
    const moving = parts.reduce((sum, { length }) => sum + length, 0);
    if (moving === 0 && there.length === 0) return async () => ({ applied: true, norm: 0 });
    const path = gradientPath(this.#profile);
    if (path === undefined) throw new BackendError(`our losses cannot run on the server '${this.#profile.name}'`);
    const chunks = parts.flatMap((part) => (part.length === 0 ? [] : chunksOf(part)));
    const passes = await sendPasses(
      model,
      chunks.map((chunk) => gradientPass(chunk, path, moving)),
    );
    const results = rowsOf(passes, chunks);
    const ended = Promise.allSettled([results]); // an error of `results` is thrown below, and never goes unhandled
    // The update follows also if a pass failed: on SkyRL it alone clears the gradient, and the next model there has it.
    if (!keepsOrder(this.#profile)) await ended;
    const step = await model.submit('optim_step', { adam_params: adamParams(settings) }, { repeatable: false });
    return async () => {
      const answer = step.result(stepAnswer);
      await settled<unknown>([results, answer]);
      const norm = gradientNormOf((await answer).metrics);
      model.updated();
      return { applied: true, ...(norm === undefined ? {} : { norm }) };
    };
  }
}

type ReplyMetrics = Readonly<Record<string, number | null>> | null | undefined;

/** The norm before clipping, under the server's name for it; undefined if the server does not report it. */
export function gradientNormOf(metrics: ReplyMetrics): number | undefined {
  const metric = Object.entries(metrics ?? {}).find(([name]) => /grad_norm|grad_l2/.test(name));
  return metric === undefined ? undefined : finite(metric[1], `the gradient's norm (${metric[0]})`);
}

function adamParams({ optimizer, clipNorm }: OptimStepSettings) {
  if (optimizer.type !== 'adamw')
    throw new BackendError(`a Tinker server has the optimizer adamw, not '${optimizer.type}'`);
  const { learningRate, beta1, beta2, epsilon, weightDecay } = optimizer as AdamWSettings;
  return {
    learning_rate: learningRate,
    beta1,
    beta2,
    eps: epsilon,
    weight_decay: weightDecay,
    grad_clip_norm: clipNorm,
  };
}

/** Failures after which the model may have changed or be lost, and can be made again. */
function recoverable(error: unknown): error is TinkerError {
  return isKind(error, 'lost', 'late', 'failed', 'malformed', 'fate-unknown', 'unreachable');
}

const hasNumbers = ({ gradient }: GradientRow) => gradient.every(Number.isFinite);

/** The log-probs of a row, with 0 for the prompt. */
function written(row: Float32Array, { mask }: TrainingSample): Float32Array {
  return row.map((logprob, t) => (mask[t] === 0 ? 0 : logprob));
}

/** The objective's gradient and figures, from the log-probs of all targets of its samples. */
function contributionOf(objective: Objective, logprobs: readonly Float32Array[]): Omit<Contribution, 'sentTo'> {
  const { samples } = objective;
  const responses = samples.map((sample, i) => written(logprobs[i] as Float32Array, sample));
  const sums = objective.begin(() => responses);
  const rows = samples.map((sample, i) => {
    const response = responses[i] as Float32Array;
    return { tokens: sample.tokens, gradient: sums.gradient(i, response), logprobs: logprobs[i] as Float32Array };
  });
  // An estimate: the expectation of -log p over sampled tokens is the entropy.
  const { loss, metrics, ratios } = sums.result(responses.map((row) => row.map((logprob) => -logprob)));
  return {
    rows,
    result: {
      loss,
      metrics,
      tokens: samples.reduce((total, { tokens }) => total + tokens.length, 0),
      ...(ratios && { ratios }),
    },
  };
}

const FAILED: Contribution = {
  rows: undefined,
  sentTo: undefined,
  result: {
    loss: Number.NaN,
    metrics: { tokens: 0, units: 0 },
    tokens: 0,
  },
};

function partsOf(pass: PassInput, chunks: readonly (readonly unknown[])[]): PassInput[] {
  let from = 0;
  return chunks.map(({ length }) => {
    const data = pass.data.slice(from, from + length);
    from += length;
    return { ...pass, data };
  });
}
