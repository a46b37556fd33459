/**
 * What an update of a policy minimises, from samples to the gradient of their log-probs. Every backend goes through it: it
 * sends `samples` through its model, hands over their log-probs row by row and propagates the gradients that it gets back.
 */

import { ArgumentError } from '../../core/errors.js';
import type { TrainingSample } from '../../core/sample.js';
import { assertSameShape, hasAdvantage } from '../aggregate.js';
import { correctionOf, lossKind } from '../loss-kind.js';
import type { LossSpec } from '../loss-spec.js';
import { LossSums } from '../policy-loss-accumulator.js';
import { EntropySums, KlSums } from './added-terms.js';
import { type MergedRow, mergeSamples } from './merged-samples.js';
import type { ForwardBackwardOptions, LossMetrics } from './objective-options.js';

export interface Objective {
  /** What has to go through the model: identical samples once, those that add nothing not at all. */
  readonly samples: readonly TrainingSample[];
  /**
   * Where it is defined, it wants the log-probs of all `samples` before the first gradient.
   * @param logprobs [samples][T], of the current policy
   */
  readonly survey?: (logprobs: readonly Float32Array[]) => void;
  /**
   * Adds the sample at this position of `samples` to the sums, each once, in order.
   * @param logprobs [T], of the current policy
   * @returns d loss / d logprobs [T], 0 where masked
   */
  gradient(index: number, logprobs: Float32Array): Float32Array;
  /**
   * Where it is defined, the loss depends on the policy's entropy too: adds it, once for each sample, in order.
   * @param entropies [T], of the current policy at the sample's temperature, nats
   * @returns d loss / d entropy [T], 0 where masked
   */
  readonly entropyGradient?: (index: number, entropies: Float32Array) => Float32Array;
  /** Of the samples added so far. */
  result(): { readonly loss: number; readonly metrics: LossMetrics };
}

/** @throws ArgumentError when shapes differ, a spec is wrong or a sample lacks what a term needs */
export function objectiveOf(samples: readonly TrainingSample[], options: ForwardBackwardOptions): Objective {
  const { loss, normalizer } = options;
  if (loss.type === 'demonstrations') return new Demonstrations(samples, normalizer);
  return new PolicyObjective(samples, loss, options);
}

/** A policy loss and the terms beside it; what the copies of a merged row would have given one by one. */
class PolicyObjective implements Objective {
  readonly samples: readonly TrainingSample[];
  readonly #rows: readonly MergedRow[];
  readonly #policyLoss: LossSums;
  readonly #kl: KlSums | undefined;
  readonly #entropy: EntropySums | undefined;

  readonly survey?: (logprobs: readonly Float32Array[]) => void;
  readonly entropyGradient?: (index: number, entropies: Float32Array) => Float32Array;

  constructor(
    samples: readonly TrainingSample[],
    loss: LossSpec,
    { normalizer, kl, entropyCoefficient = 0 }: ForwardBackwardOptions,
  ) {
    const kind = lossKind(loss);
    const sums = new LossSums(kind, correctionOf(loss), normalizer);
    this.#policyLoss = sums;
    const weighing = { aggregate: kind.aggregate, normalizer };
    this.#kl = kl === undefined || kl.coefficient === 0 ? undefined : new KlSums(kl, weighing);
    this.#entropy = entropyCoefficient === 0 ? undefined : new EntropySums(entropyCoefficient, weighing);
    const batch = kind.selects === true ? samples.filter((one) => hasAdvantage(one.mask, one.advantages)) : samples;
    // The terms hold rows without advantage too.
    const keep = this.#kl !== undefined || this.#entropy !== undefined;
    this.#rows = mergeSamples(batch, { withoutAdvantage: keep ? 'keep' : 'drop' });
    this.samples = this.#rows.map(({ sample }) => sample);
    const entropy = this.#entropy;
    if (entropy !== undefined)
      this.entropyGradient = (index, entropies) => {
        const { sample, indices } = this.#rows[index] as MergedRow;
        return entropy.addRow(sample.mask, entropies, indices.length);
      };
    if (!sums.surveys) return;
    for (const { mask } of samples) sums.weigh(mask);
    this.survey = (logprobs) => {
      this.#rows.forEach(({ parts }, index) => {
        const row = this.#prepared(index, logprobs[index] as Float32Array);
        for (const { advantages } of parts) sums.survey(row, advantages);
      });
    };
  }

  gradient(index: number, logprobs: Float32Array): Float32Array {
    const { sample, parts, indices } = this.#rows[index] as MergedRow;
    const row = this.#prepared(index, logprobs);
    const gradient = new Float64Array(logprobs.length);
    this.#policyLoss.observe(row, indices.length);
    for (const { advantages, counts } of parts) this.#policyLoss.add(row, advantages, counts, gradient);
    if (this.#kl !== undefined) {
      const { mask, referenceLogprobs, agent } = sample;
      if (referenceLogprobs === undefined)
        throw new ArgumentError(`a sample of agent ${agent} has no referenceLogprobs, which a KL term needs`);
      this.#kl.addRow(mask, logprobs, referenceLogprobs, indices.length, gradient);
    }
    return Float32Array.from(gradient);
  }

  #prepared(index: number, logprobs: Float32Array): ReturnType<LossSums['prepare']> {
    const { sample } = this.#rows[index] as MergedRow;
    assertSameShape({ tokens: [sample.tokens], logprobs: [logprobs] });
    return this.#policyLoss.prepare({ ...sample, logprobs });
  }

  result() {
    const loss = this.#policyLoss.loss + (this.#kl?.loss ?? 0) + (this.#entropy?.loss ?? 0);
    const metrics = this.#policyLoss.metrics();
    return { loss, metrics: this.#kl === undefined ? metrics : { ...metrics, referenceKl: this.#kl.mean } };
  }
}

/** The cross-entropy of every written token: each sends its log-prob up by 1 / normalizer. */
class Demonstrations implements Objective {
  readonly samples: readonly TrainingSample[];
  readonly #normalizer: number;
  #sum = 0;

  constructor(samples: readonly TrainingSample[], normalizer: number) {
    this.samples = samples;
    this.#normalizer = normalizer;
  }

  gradient(index: number, logprobs: Float32Array): Float32Array {
    for (const logprob of logprobs) this.#sum -= logprob;
    const { mask } = this.samples[index] as TrainingSample;
    return Float32Array.from(mask, (written) => (written === 1 ? -1 / this.#normalizer : 0));
  }

  result() {
    const metrics = { clipFraction: 0, clipFractionLower: 0, approxKl: 0, maxRatioDeviation: 0, logprobGap: 0 };
    return { loss: this.#sum / this.#normalizer, metrics };
  }
}
