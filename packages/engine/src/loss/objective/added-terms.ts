/**
 * Terms beside the policy loss: coefficient · Σ_rows weight(row) · Σ_tokens value / normalizer, as the policy loss adds
 * up.
 */
import { ArgumentError } from '../../errors.js';
import { countTokens, rowWeight, type TokenNumbers, type WeighedRow } from '../aggregate.js';
import type { LossKind } from '../define-loss.js';
import { type KlTerm, klEstimator } from '../kl.js';

export interface Weighing {
  readonly aggregate: LossKind['aggregate'];
  readonly normalizer: number;
}

/** A term that sums up one value a token. */
class TermSums {
  readonly #coefficient: number;
  readonly #weighing: Weighing;
  #tokens = 0;
  #sum = 0;
  loss = 0;

  /** @throws ArgumentError when the coefficient is not a finite number */
  constructor(name: string, coefficient: number, weighing: Weighing) {
    if (!Number.isFinite(coefficient)) throw new ArgumentError(`${name} must be a number, got ${coefficient}`);
    this.#coefficient = coefficient;
    this.#weighing = weighing;
  }

  /** The mean of the values of the written tokens added so far, before the coefficient. Undefined without a token. */
  get mean(): number | undefined {
    return this.#tokens === 0 ? undefined : this.#sum / this.#tokens;
  }

  /** Adds the written tokens of a row that stands for `copies` samples; returns d loss / d value of each of them. */
  add(row: WeighedRow, copies: number, value: (t: number) => number): number {
    const { mask } = row;
    const tokens = countTokens(mask);
    if (tokens === 0) return 0;
    let sum = 0;
    for (let t = 0; t < mask.length; t++) if (mask[t] !== 0) sum += value(t);
    const { aggregate, normalizer } = this.#weighing;
    const scale = (copies * this.#coefficient * rowWeight(aggregate, tokens, row)) / normalizer;
    this.loss += scale * sum;
    this.#tokens += copies * tokens;
    this.#sum += copies * sum;
    return scale;
  }
}

/** A KL penalty to the reference. */
export class KlSums extends TermSums {
  readonly #estimator: ReturnType<typeof klEstimator>;

  constructor({ kind, coefficient }: KlTerm, weighing: Weighing) {
    super('kl.coefficient', coefficient, weighing);
    this.#estimator = klEstimator(kind);
  }

  /** Adds a row, and its gradient to `gradient` [T]. */
  addRow(
    row: WeighedRow,
    logprobs: TokenNumbers,
    referenceLogprobs: TokenNumbers,
    copies: number,
    gradient: Float64Array,
  ): void {
    const { mask } = row;
    const d = (t: number) => (logprobs[t] as number) - (referenceLogprobs[t] as number);
    const scale = this.add(row, copies, (t) => this.#estimator.value(d(t)));
    for (let t = 0; t < mask.length; t++)
      if (mask[t] !== 0) gradient[t] = (gradient[t] as number) + scale * this.#estimator.derivative(d(t));
  }
}

/** The entropy bonus. It adds a negative number to the loss. */
export class EntropySums extends TermSums {
  constructor(coefficient: number, weighing: Weighing) {
    super('entropyCoefficient', -coefficient, weighing);
  }

  /** Adds a row; returns d loss / d entropy [T], 0 where masked. */
  addRow(row: WeighedRow, entropies: TokenNumbers, copies: number): Float32Array {
    const scale = this.add(row, copies, (t) => entropies[t] as number);
    return Float32Array.from(row.mask, (written) => (written === 0 ? 0 : scale));
  }
}
