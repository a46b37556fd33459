/** The sum of a policy loss over the rows of a mini-batch, which come one by one, identical samples as one row. */
import { ArgumentError } from '../errors.js';
import type { TokenNumbers, WeighedRow } from './aggregate.js';
import type { BegunLoss, LossKind, LossToken, TokenLoss, TokenOutcome } from './define-loss.js';
import {
  type AdvantagePart,
  type LossRow,
  lossBatch,
  type RowReading,
  type ScoredRow,
  scoredRow,
  visitTokens,
} from './loss-batch.js';
import type { LossMetrics } from './loss-metrics.js';
import type { ImportanceCorrection } from './loss-settings.js';
import { ratioSpans, tokensPerUnit } from './ratio-spans.js';

export interface NormalizedLoss {
  readonly kind: LossKind;
  readonly correction: ImportanceCorrection | undefined;
  readonly normalizer: number;
  /** The constants of the whole mini-batch, if the rows are a part of it; see `LossKind.begin`. */
  readonly context?: unknown;
}

/**
 * Adds up a policy loss. The constructor takes all rows, so that a loss can measure constants over all of them before
 * the first row is added.
 */
export class PolicyLossAccumulator {
  readonly #reading: RowReading;
  readonly #normalizer: number;
  readonly #rows: readonly LossRow[];
  readonly #begun: BegunLoss;
  readonly #outcome: TokenOutcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
  readonly #token: LossToken = { ratio: 1, logRatio: 0, advantage: 0, logprob: 0 };
  #tokens = 0;
  /** The number of units that clipping is counted in: tokens, or turns or sequences if these share a ratio. */
  #units = 0;
  #clipped = 0;
  #clippedLower = 0;
  #kl = 0;
  #maxRatioDeviation = 0;
  #gap = 0;
  #importance = 0;
  #beyond = 0;
  #loss = 0;

  /**
   * @param batch `sent`: all samples, also those without a row. `score`: gives the current policy's log-probs of all
   *   rows; called only if the loss needs them before the first row
   * @throws ArgumentError when the normalizer is not a number >= 0, or a row lacks proximal log-probs that the loss
   *   needs
   */
  constructor(
    { kind, correction, normalizer, context }: NormalizedLoss,
    rows: readonly LossRow[],
    batch: { readonly sent: readonly WeighedRow[]; readonly score: () => readonly TokenNumbers[] },
  ) {
    if (!(normalizer >= 0)) throw new ArgumentError(`the loss's normalizer must be a number >= 0, got ${normalizer}`);
    this.#reading = { ratio: kind.ratio, aggregate: kind.aggregate, correction };
    this.#normalizer = normalizer;
    this.#rows = rows;
    this.#begun = kind.begin(lossBatch(this.#reading, rows, batch), context);
  }

  get loss(): number {
    return this.#loss;
  }

  /** The loss of a token, with the constants of this batch. */
  get token(): TokenLoss {
    return this.#begun.token;
  }

  /**
   * Adds the row at this position; every row is added once, in order.
   * @param logprobs [T], of the current policy
   * @returns d loss / d logprobs [T], 0 where masked
   */
  add(index: number, logprobs: TokenNumbers): Float64Array {
    const plain = this.#rows[index];
    if (plain === undefined) throw new ArgumentError(`there is no row ${index}; there are ${this.#rows.length}`);
    const row = scoredRow(this.#reading, plain, logprobs);
    const gradient = new Float64Array(row.mask.length);
    this.#observe(row, plain.copies);
    for (const part of plain.parts) this.#addPart(row, part, gradient);
    return gradient;
  }

  metrics(): LossMetrics {
    const [tokens, units] = [this.#tokens, this.#units];
    if (tokens === 0) return { tokens, units, ...this.#begun.metrics };
    return {
      tokens,
      units,
      clipFraction: this.#clipped / units,
      clipFractionLower: this.#clippedLower / units,
      approxKl: this.#kl / tokens,
      maxRatioDeviation: this.#maxRatioDeviation,
      logprobGap: this.#gap / tokens,
      ...(this.#reading.correction === undefined
        ? {}
        : { importanceWeight: this.#importance / tokens, importanceBeyond: this.#beyond / tokens }),
      ...this.#begun.metrics,
    };
  }

  #observe(row: ScoredRow, copies: number): void {
    const { logprobs, behaviourLogprobs, oldLogprobs, mask, tokens, weights, beyond } = row;
    for (let t = 0; t < mask.length; t++) {
      if (mask[t] === 0) continue;
      const logRatio = (logprobs[t] as number) - (oldLogprobs[t] as number);
      this.#kl -= copies * logRatio;
      this.#gap += copies * Math.abs((logprobs[t] as number) - (behaviourLogprobs[t] as number));
      const deviation = Math.abs(Math.exp(logRatio) - 1);
      // Not Math.max: a ratio that is not a number must show.
      if (!(deviation <= this.#maxRatioDeviation)) this.#maxRatioDeviation = deviation;
      if (weights !== undefined) this.#importance += copies * (weights[t] as number);
    }
    const { ratio } = this.#reading;
    this.#tokens += copies * tokens;
    this.#beyond += copies * beyond;
    this.#units += copies * (ratio === 'token' ? tokens : ratioSpans(ratio, mask).length);
  }

  /** Adds the loss of a row with these advantages, and its gradient to `gradient` [T]. */
  #addPart(row: ScoredRow, { advantages, counts }: AdvantagePart, gradient: Float64Array): void {
    const { mask, weight } = row;
    const { ratio } = this.#reading;
    const [token, outcome] = [this.#token, this.#outcome];
    const byToken = ratio === 'token';
    const scale = weight / this.#normalizer / this.#begun.divisor;
    for (const span of ratioSpans(ratio, mask)) {
      const unitsPerToken = byToken ? 1 : 1 / span.tokens;
      let loss = 0;
      let shared = 0;
      const visited = visitTokens({ ratio, row, advantages, span, token }, (t) => {
        outcome.clipped = false;
        outcome.clippedLower = false;
        this.#begun.token(token, outcome);
        loss += outcome.loss;
        if (byToken) gradient[t] = (gradient[t] as number) + scale * outcome.gradient;
        else shared += outcome.gradient;
        const units = unitsPerToken * (counts === undefined ? 1 : (counts[t] as number));
        if (outcome.clipped) this.#clipped += units;
        if (outcome.clippedLower) this.#clippedLower += units;
      });
      if (visited === 0) continue; // the normalizer may be 0 then
      this.#loss += scale * loss;
      if (shared === 0) continue;
      // Every token moves a geometric mean's log by 1 / tokens, a product's by 1.
      const each = (scale * shared) / tokensPerUnit(ratio, span.tokens);
      for (let t = span.start; t < span.end; t++) if (mask[t] !== 0) gradient[t] = (gradient[t] as number) + each;
    }
  }
}
