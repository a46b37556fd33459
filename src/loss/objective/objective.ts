/**
 * What an update of a policy minimises, from samples to the gradient of their log-probs. Every backend goes through it:
 * it begins, sends `samples` through its model, hands over their log-probs row by row and propagates the gradients it
 * gets back.
 */

import { ArgumentError } from '../../core/errors.js';
import type { TrainingSample } from '../../core/sample.js';
import { assertSameShape } from '../aggregate.js';
import { correctionOf, type LossSpec, lossKind } from '../loss-spec.js';
import { type LossRow, type NormalizedLoss, PolicyLossAccumulator } from '../policy-loss-accumulator.js';
import { EntropySums, KlSums } from './added-terms.js';
import { type MergedRow, type MergedSample, mergeSamples } from './merged-samples.js';
import type { ForwardBackwardOptions, LossMetrics } from './objective-options.js';
import { partOf, rowsOfSample } from './sample-rows.js';
import { type TokenRatios, tokenRatios } from './token-ratios.js';

/** A loss of some samples, before the log-probs of the current policy are known. */
export interface Objective {
  /** The samples that have to go through the model: identical samples once, those that add nothing not at all. */
  readonly samples: readonly TrainingSample[];
  /** Whether `begin` asks for the log-probs of all samples: the loss of one depends on all of them. */
  readonly needsScores: boolean;
  /**
   * Begins the sums, which every sample is then added to.
   * @param score Gives the log-probs [samples][T] of all `samples` under the current policy. It is called at once, and
   *   only where `needsScores` is true.
   */
  begin(score: () => readonly Float32Array[]): ObjectiveSums;
}

/** The sums of an objective, to which its samples are added one by one. */
export interface ObjectiveSums {
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
  /** The loss and its metrics over the samples added so far; the ratios of all samples, where they are kept. */
  result(): { readonly loss: number; readonly metrics: LossMetrics; readonly ratios?: SampleRatios };
}

/** One entry a sample of the objective; undefined for one that adds nothing. */
export type SampleRatios = readonly (TokenRatios | undefined)[];

/** The objective of these samples. @throws ArgumentError when shapes differ or a spec is wrong */
export function objectiveOf(samples: readonly TrainingSample[], options: ForwardBackwardOptions): Objective {
  const { loss, normalizer } = options;
  if (loss.type === 'demonstrations') return new Demonstrations(samples, normalizer);
  return new PolicyObjective(samples, loss, options);
}

/** A policy loss and the terms beside it; what the copies of a merged row would have given one by one. */
class PolicyObjective implements Objective {
  readonly samples: readonly TrainingSample[];
  readonly needsScores: boolean;
  readonly #merged: readonly MergedSample[];
  readonly #sent: readonly TrainingSample[];
  readonly #spec: LossSpec;
  readonly #loss: NormalizedLoss;
  readonly #options: ForwardBackwardOptions;

  constructor(samples: readonly TrainingSample[], loss: LossSpec, options: ForwardBackwardOptions) {
    const kind = lossKind(loss);
    this.#spec = loss;
    this.#loss = { kind, correction: correctionOf(loss), normalizer: options.normalizer };
    this.#options = options;
    this.#sent = samples;
    // The other terms and a KL over all rows count rows without advantage too, unless the loss selects.
    const { kl, entropyCoefficient } = activeTerms(options);
    const keep = kl !== undefined || entropyCoefficient !== undefined || kind.fromKl === true;
    this.#merged = mergeSamples(samples, {
      withoutAdvantage: kind.selects === true ? 'selects' : keep ? 'keep' : 'drop',
    });
    this.samples = this.#merged.map(({ sample }) => sample);
    this.needsScores = kind.fromKl === true || kind.dampensClipping === true;
  }

  begin(score: () => readonly Float32Array[]): ObjectiveSums {
    const sums = new PolicyObjectiveSums(this.#merged, this.#loss, this.#options, {
      sent: this.#sent.flatMap(rowsOfSample),
      score: () => {
        const logprobs = score();
        assertSameShape({ tokens: this.samples.map(({ tokens }) => tokens), logprobs });
        return this.#merged.flatMap(({ rows }, i) => rows.map(({ span }) => partOf(logprobs[i] as Float32Array, span)));
      },
    });
    return this.#options.keepRatios === true ? this.#withRatios(sums) : sums;
  }

  /** The same sums, which note the ratios of every copy of a sample that is added. */
  #withRatios(sums: PolicyObjectiveSums): ObjectiveSums {
    const ratios: (TokenRatios | undefined)[] = this.#sent.map(() => undefined);
    const { entropyGradient } = sums;
    return {
      ...(entropyGradient && { entropyGradient }),
      gradient: (index, logprobs) => {
        for (const i of this.#merged[index]?.indices ?? [])
          ratios[i] = tokenRatios(this.#spec, this.#sent[i] as TrainingSample, logprobs);
        return sums.gradient(index, logprobs);
      },
      result: () => ({ ...sums.result(), ratios }),
    };
  }
}

/** The terms beside the policy loss whose coefficient is not 0. */
function activeTerms({ kl, entropyCoefficient = 0 }: ForwardBackwardOptions) {
  return {
    kl: kl === undefined || kl.coefficient === 0 ? undefined : kl,
    entropyCoefficient: entropyCoefficient === 0 ? undefined : entropyCoefficient,
  };
}

class PolicyObjectiveSums implements ObjectiveSums {
  readonly #merged: readonly MergedSample[];
  /** The position of each sample's first row among the rows of all. */
  readonly #first: readonly number[];
  readonly #policyLoss: PolicyLossAccumulator;
  readonly #kl: KlSums | undefined;
  readonly #entropy: EntropySums | undefined;
  readonly entropyGradient?: (index: number, entropies: Float32Array) => Float32Array;

  constructor(
    merged: readonly MergedSample[],
    loss: NormalizedLoss,
    options: ForwardBackwardOptions,
    batch: ConstructorParameters<typeof PolicyLossAccumulator>[2],
  ) {
    this.#merged = merged;
    let next = 0;
    this.#first = merged.map(({ rows }) => {
      const first = next;
      next += rows.length;
      return first;
    });
    const accumulated = merged.flatMap(({ sample, rows }) => rows.map((row) => lossRow(sample, row)));
    this.#policyLoss = new PolicyLossAccumulator(loss, accumulated, batch);
    const weighing = { aggregate: loss.kind.aggregate, normalizer: loss.normalizer };
    const { kl, entropyCoefficient } = activeTerms(options);
    this.#kl = kl === undefined ? undefined : new KlSums(kl, weighing);
    if (entropyCoefficient === undefined) return;
    const entropy = new EntropySums(entropyCoefficient, weighing);
    this.#entropy = entropy;
    this.entropyGradient = (index, entropies) => {
      const gradient = new Float32Array(entropies.length);
      for (const row of (merged[index] as MergedSample).rows)
        gradient.set(entropy.addRow(row, partOf(entropies, row.span), row.copies), row.span.start);
      return gradient;
    };
  }

  gradient(index: number, logprobs: Float32Array): Float32Array {
    const { sample, rows } = this.#merged[index] as MergedSample;
    assertSameShape({ tokens: [sample.tokens], logprobs: [logprobs] });
    const gradient = new Float32Array(logprobs.length);
    rows.forEach((row, r) => {
      const ofRow = partOf(logprobs, row.span);
      const slopes = this.#policyLoss.add((this.#first[index] as number) + r, ofRow);
      if (this.#kl !== undefined) {
        const { referenceLogprobs, agent } = sample;
        if (referenceLogprobs === undefined)
          throw new ArgumentError(`a sample of agent ${agent} has no referenceLogprobs, which a KL term needs`);
        this.#kl.addRow(row, ofRow, partOf(referenceLogprobs, row.span), row.copies, slopes);
      }
      gradient.set(slopes, row.span.start);
    });
    return gradient;
  }

  result() {
    const loss = this.#policyLoss.loss + (this.#kl?.loss ?? 0) + (this.#entropy?.loss ?? 0);
    const metrics = this.#policyLoss.metrics();
    return { loss, metrics: this.#kl === undefined ? metrics : { ...metrics, referenceKl: this.#kl.mean } };
  }
}

/** A row of a sample as the policy loss adds it up. */
function lossRow({ behaviourLogprobs, proximalLogprobs }: TrainingSample, row: MergedRow): LossRow {
  const { span } = row;
  return {
    ...row,
    behaviourLogprobs: partOf(behaviourLogprobs, span),
    proximalLogprobs: proximalLogprobs && partOf(proximalLogprobs, span),
  };
}

/** The cross-entropy of every written token: each sends its log-prob up by 1 / normalizer. */
class Demonstrations implements Objective {
  readonly samples: readonly TrainingSample[];
  readonly needsScores = false;
  readonly #normalizer: number;

  constructor(samples: readonly TrainingSample[], normalizer: number) {
    this.samples = samples;
    this.#normalizer = normalizer;
  }

  begin(): ObjectiveSums {
    let sum = 0;
    return {
      gradient: (index, logprobs) => {
        for (const logprob of logprobs) sum -= logprob;
        const { mask } = this.samples[index] as TrainingSample;
        return Float32Array.from(mask, (written) => (written === 1 ? -1 / this.#normalizer : 0));
      },
      result: () => {
        const metrics = { clipFraction: 0, clipFractionLower: 0, approxKl: 0, maxRatioDeviation: 0, logprobGap: 0 };
        return { loss: sum / this.#normalizer, metrics };
      },
    };
  }
}
