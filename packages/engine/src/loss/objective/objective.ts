/**
 * The objective of an update, from samples to the gradient of their log-probs. Every backend uses it: the backend
 * begins the objective, sends `samples` through its model, gives their log-probs row by row and propagates the
 * gradients that it receives.
 */

import { ArgumentError, given } from '../../errors.js';
import type { TrainingSample } from '../../nouns.js';
import { assertSameShape, countTokensOf } from '../aggregate.js';
import type { TokenLoss } from '../define-loss.js';
import type { LossRow } from '../loss-batch.js';
import { type AnyLoss, correctionOf, lossKind } from '../loss-spec.js';
import { type NormalizedLoss, PolicyLossAccumulator } from '../policy-loss-accumulator.js';
import { ratioSpans, sharedLogRatio } from '../ratio-spans.js';
import { EntropySums, KlSums } from './added-terms.js';
import { type MergedRow, type MergedSample, mergeSamples } from './merged-samples.js';
import type { ForwardBackwardOptions, Objective, ObjectiveSums, TokenRatios } from './objective-sums.js';
import { partOf, rowsOfSample } from './sample-rows.js';

export type { Objective } from './objective-sums.js';

/** The objective of these samples. @throws ArgumentError when shapes differ or a spec is wrong */
export function objectiveOf(samples: readonly TrainingSample[], options: ForwardBackwardOptions): Objective {
  const { loss, normalizer } = options;
  if (loss.type === 'demonstrations') return demonstrations(samples, normalizer);
  return new PolicyObjective(samples, loss, options);
}

/** A policy loss and its additional terms. A merged row gives the same sums as its copies one by one. */
class PolicyObjective implements Objective {
  readonly samples: readonly TrainingSample[];
  readonly needsScores: boolean;
  readonly #merged: readonly MergedSample[];
  readonly #sent: readonly TrainingSample[];
  readonly #spec: AnyLoss;
  readonly #loss: NormalizedLoss;
  readonly #options: ForwardBackwardOptions;

  constructor(samples: readonly TrainingSample[], loss: AnyLoss, options: ForwardBackwardOptions) {
    const kind = lossKind(loss);
    this.#spec = loss;
    this.#loss = { kind, correction: correctionOf(loss), normalizer: options.normalizer };
    this.#options = options;
    this.#sent = samples;
    // The other terms need the log-probs of rows without advantage too, unless the loss excludes these rows.
    const { kl, entropyCoefficient } = activeTerms(options);
    const others = kl !== undefined || entropyCoefficient !== undefined;
    const withoutAdvantage = others && kind.withoutAdvantage !== 'excluded' ? 'scored' : kind.withoutAdvantage;
    this.#merged = mergeSamples(samples, withoutAdvantage);
    this.samples = this.#merged.map(({ sample }) => sample);
    this.needsScores = kind.prepares;
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

  /** The same sums. They also keep the ratios of every copy of a sample that is added. */
  #withRatios(sums: PolicyObjectiveSums): ObjectiveSums {
    const ratios: (TokenRatios | undefined)[] = this.#sent.map(() => undefined);
    const { entropyGradient } = sums;
    return {
      ...(entropyGradient && { entropyGradient }),
      gradient: (index, logprobs) => {
        for (const i of this.#merged[index]?.indices ?? [])
          ratios[i] = tokenRatios(this.#spec, this.#sent[i] as TrainingSample, logprobs, sums.token);
        return sums.gradient(index, logprobs);
      },
      result: (entropies) => ({ ...sums.result(entropies), ratios }),
    };
  }
}

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

  /** The loss of a token, with the constants of this batch. */
  get token(): TokenLoss {
    return this.#policyLoss.token;
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

  result(entropies?: readonly Float32Array[]) {
    const loss = this.#policyLoss.loss + (this.#kl?.loss ?? 0) + (this.#entropy?.loss ?? 0);
    const referenceKl = this.#kl?.mean;
    const entropy = entropies && meanEntropy(this.#merged, entropies);
    const metrics = {
      ...this.#policyLoss.metrics(),
      ...given({ referenceKl, entropy }),
    };
    return { loss, metrics };
  }
}

/** The mean over the written tokens of the rows, each as often as it has copies. Undefined without a token. */
function meanEntropy(
  merged: readonly { readonly rows: readonly Pick<MergedRow, 'mask' | 'span' | 'copies'>[] }[],
  entropies: readonly Float32Array[], // [merged][T]
): number | undefined {
  let [sum, tokens] = [0, 0];
  for (const [i, { rows }] of merged.entries())
    for (const { mask, span, copies } of rows)
      for (const [t, entropy] of partOf(entropies[i] as Float32Array, span).entries())
        if (mask[t] !== 0) {
          sum += copies * entropy;
          tokens += copies;
        }
  return tokens === 0 ? undefined : sum / tokens;
}

function lossRow({ behaviourLogprobs, proximalLogprobs }: TrainingSample, row: MergedRow): LossRow {
  const { span } = row;
  return {
    ...row,
    behaviourLogprobs: partOf(behaviourLogprobs, span),
    proximalLogprobs: proximalLogprobs && partOf(proximalLogprobs, span),
  };
}

// The ratio of each token of a sample in a policy loss, and whether it was clipped, for people to look at.

/**
 * @param logprobs [T], of the policy that is updated
 * @param token The loss of a token, with the constants of the batch
 */
function tokenRatios(loss: AnyLoss, sample: TrainingSample, logprobs: Float32Array, token: TokenLoss): TokenRatios {
  const { ratio } = lossKind(loss);
  const { tokens, advantages, behaviourLogprobs, proximalLogprobs } = sample;
  const old = (correctionOf(loss) === undefined ? undefined : proximalLogprobs) ?? behaviourLogprobs;
  const noted = { ratios: new Float32Array(tokens.length), clipped: new Uint8Array(tokens.length) };
  for (const { span, mask } of rowsOfSample(sample)) {
    const [now, before] = [partOf(logprobs, span), partOf(old, span)];
    const logRatio = (t: number) => (now[t] as number) - (before[t] as number);
    for (const shares of ratioSpans(ratio, mask)) {
      const shared = ratio === 'token' ? undefined : sharedLogRatio(ratio, shares, mask, logRatio);
      for (let t = shares.start; t < shares.end; t++) {
        if (mask[t] === 0) continue;
        const log = shared ?? logRatio(t);
        const value = Math.exp(log);
        const at = span.start + t;
        noted.ratios[at] = value;
        const advantage = advantages[at] as number;
        if (advantage === 0) continue;
        const outcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
        token({ ratio: value, logRatio: log, advantage, logprob: now[t] as number }, outcome);
        if (outcome.clipped || outcome.clippedLower) noted.clipped[at] = 1;
      }
    }
  }
  return noted;
}

/**
 * The objective of supervised learning: the cross-entropy of every written token, whatever its advantage. Each token's
 * gradient is -1 / normalizer.
 */
function demonstrations(samples: readonly TrainingSample[], normalizer: number): Objective {
  return {
    samples,
    needsScores: false,
    begin() {
      let sum = 0;
      return {
        gradient: (index, logprobs) => {
          for (const logprob of logprobs) sum -= logprob;
          const { mask } = samples[index] as TrainingSample;
          return Float32Array.from(mask, (written) => (written === 1 ? -1 / normalizer : 0));
        },
        result: (entropies) => {
          const rows = samples.map((sample) => ({ rows: rowsOfSample(sample).map((row) => ({ ...row, copies: 1 })) }));
          const entropy = entropies && meanEntropy(rows, entropies);
          const metrics = { tokens: countTokensOf(samples), units: 0, ...given({ entropy }) };
          return { loss: sum / normalizer, metrics };
        },
      };
    },
  };
}
