/** The sum of a policy loss over the rows of a mini-batch, which come one by one, identical samples as one row. */
import { ArgumentError } from '../core/errors.js';
import { countTokens, type Row, rowWeight, type WeighedRow } from './aggregate.js';
import type { LossKind, TokenOutcome } from './define-loss.js';
import { correctionWeights } from './importance-correction.js';
import { klOfRatio } from './kl.js';
import type { ImportanceCorrection } from './loss-settings.js';
import type { LossMetrics } from './objective/objective-options.js';
import { type RatioSpan, ratioSpans, sharedLogRatio, tokensPerUnit } from './ratio-spans.js';

/** A policy loss, and what divides its sum. */
export interface NormalizedLoss {
  readonly kind: LossKind;
  readonly correction: ImportanceCorrection | undefined;
  readonly normalizer: number;
  /** What a loss that measures log ratios from the KL takes for it; that of the given rows by default. */
  readonly klBaseline?: number | undefined;
}

/** Advantages of samples that are identical otherwise. */
export interface AdvantagePart {
  readonly advantages: Row; // [T]
  /** How many samples' advantages each entry sums up; 1 where it is not given. */
  readonly counts?: Row; // [T]
}

/** A row that is to be added, without the log-probs of the current policy. */
export interface LossRow extends WeighedRow {
  readonly behaviourLogprobs: Row; // [T]
  /** A loss that corrects importance needs them. */
  readonly proximalLogprobs?: Row | undefined; // [T]
  /** How many identical samples the row stands for. */
  readonly copies: number;
  readonly parts: readonly AdvantagePart[];
}

/** A row with the current policy's log-probs. */
interface ScoredRow {
  readonly logprobs: Row;
  readonly behaviourLogprobs: Row;
  /** The log-probs that ratios compare the current ones with. */
  readonly oldLogprobs: Row;
  readonly mask: Row;
  readonly tokens: number;
  /** The weight of each of its tokens in the aggregation, before the normalizer. */
  readonly weight: number;
  /** Constant factors of the advantages, where importance is corrected. */
  readonly weights: Row | undefined;
  /** The number of tokens whose importance exceeds the cap. */
  readonly beyond: number;
}

/**
 * Adds up a policy loss. The constructor takes all rows, so nothing can be added before what has to be measured first.
 */
export class PolicyLossAccumulator {
  readonly #kind: LossKind;
  readonly #correction: ImportanceCorrection | undefined;
  readonly #normalizer: number;
  readonly #rows: readonly LossRow[];
  /** The mean of |ratio x advantage| that clipping leaves out, where the loss is divided by 1 + it; otherwise 0. */
  readonly #clippingBias: number;
  /** What log ratios are measured from; otherwise 0. */
  readonly #klBaseline: number;
  readonly #outcome: TokenOutcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
  #tokens = 0;
  /** The number of units that clipping is counted in: tokens, or turns or sequences where these share a ratio. */
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
   * @param sent All samples, also those without a row: what a clipping bias is the mean over
   * @param score Gives the current policy's log-probs of all rows; called only where the loss needs them before the
   *   first row
   * @throws ArgumentError when the normalizer is not a number >= 0, or a row lacks proximal log-probs that the loss
   *   needs
   */
  constructor(
    { kind, correction, normalizer, klBaseline }: NormalizedLoss,
    rows: readonly LossRow[],
    { sent, score }: { readonly sent: readonly WeighedRow[]; readonly score: () => readonly Row[] },
  ) {
    if (!(normalizer >= 0)) throw new ArgumentError(`the loss's normalizer must be a number >= 0, got ${normalizer}`);
    this.#kind = kind;
    this.#correction = correction;
    this.#normalizer = normalizer;
    this.#rows = rows;
    this.#klBaseline = kind.fromKl === true ? (klBaseline ?? this.#measureKl(score())) : 0;
    this.#clippingBias = kind.dampensClipping === true ? this.#measureClippingBias(sent, score()) : 0;
  }

  /** The loss of the rows added so far. */
  get loss(): number {
    return this.#loss;
  }

  /**
   * Adds the row at this position; every row is added once, in order.
   * @param logprobs [T], of the current policy
   * @returns d loss / d logprobs [T], 0 where masked
   */
  add(index: number, logprobs: Row): Float64Array {
    const { parts, copies } = this.#rowAt(index);
    const row = this.#scored(index, logprobs);
    const gradient = new Float64Array(row.mask.length);
    this.#observe(row, copies);
    for (const part of parts) this.#addPart(row, part, gradient);
    return gradient;
  }

  /** Means over the tokens of the rows added so far. */
  metrics(): LossMetrics {
    const units = Math.max(this.#units, 1);
    const tokens = Math.max(this.#tokens, 1);
    return {
      clipFraction: this.#clipped / units,
      clipFractionLower: this.#clippedLower / units,
      approxKl: this.#kl / tokens,
      maxRatioDeviation: this.#maxRatioDeviation,
      logprobGap: this.#gap / tokens,
      ...(this.#correction === undefined
        ? {}
        : { importanceWeight: this.#importance / tokens, importanceBeyond: this.#beyond / tokens }),
      ...(this.#kind.dampensClipping === true ? { clippingBias: this.#clippingBias } : {}),
      ...(this.#kind.fromKl === true ? { klBaseline: this.#klBaseline } : {}),
    };
  }

  #rowAt(index: number): LossRow {
    const row = this.#rows[index];
    if (row === undefined) throw new ArgumentError(`there is no row ${index}; there are ${this.#rows.length}`);
    return row;
  }

  #scored(index: number, logprobs: Row): ScoredRow {
    const plain = this.#rowAt(index);
    const { behaviourLogprobs, proximalLogprobs, mask } = plain;
    const tokens = countTokens(mask);
    const weight = rowWeight(this.#kind.aggregate, tokens, plain);
    const row = { logprobs, behaviourLogprobs, mask, tokens, weight };
    if (this.#correction === undefined)
      return { ...row, oldLogprobs: behaviourLogprobs, weights: undefined, beyond: 0 };
    if (proximalLogprobs === undefined) throw new ArgumentError('loss.importanceCorrection needs proximalLogprobs');
    const correction = correctionWeights({ behaviourLogprobs, proximalLogprobs, mask }, this.#correction);
    return { ...row, oldLogprobs: proximalLogprobs, ...correction };
  }

  #measureClippingBias(sent: readonly WeighedRow[], logprobs: readonly Row[]): number {
    const { aggregate, ratio } = this.#kind;
    let samples = 0;
    for (const row of sent) {
      const tokens = countTokens(row.mask);
      samples += rowWeight(aggregate, tokens, row) * tokens;
    }
    let leftOut = 0;
    for (const [index, { parts, mask }] of this.#rows.entries()) {
      const row = this.#scored(index, logprobs[index] as Row);
      for (const { advantages } of parts)
        for (const span of ratioSpans(ratio, mask))
          this.#visit(row, advantages, span, (_, { clipped, clippedLower }, ratioOfToken, advantage) => {
            if (clipped || clippedLower) leftOut += row.weight * ratioOfToken * Math.abs(advantage);
          });
    }
    return leftOut === 0 ? 0 : leftOut / samples;
  }

  /** The mean over rows of what estimates the KL of the policy from the old one. */
  #measureKl(logprobs: readonly Row[]): number {
    let [sum, rows] = [0, 0];
    for (const [index, { mask, copies }] of this.#rows.entries()) {
      const row = this.#scored(index, logprobs[index] as Row);
      for (const span of ratioSpans(this.#kind.ratio, mask)) {
        sum += copies * klOfRatio(this.#logRatio(row, span));
        rows += copies;
      }
    }
    return rows === 0 ? 0 : sum / rows;
  }

  /** The log of the ratio that the tokens of a span share. */
  #logRatio({ logprobs, oldLogprobs, mask }: ScoredRow, span: RatioSpan): number {
    return sharedLogRatio(this.#kind.ratio, span, mask, (t) => (logprobs[t] as number) - (oldLogprobs[t] as number));
  }

  /** Counts the tokens and ratios of a row `copies` times in the metrics. */
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
    this.#tokens += copies * tokens;
    this.#beyond += copies * beyond;
    this.#units += copies * (this.#kind.ratio === 'token' ? tokens : ratioSpans(this.#kind.ratio, mask).length);
  }

  /** Adds the loss of a row with these advantages, and its gradient to `gradient` [T]. */
  #addPart(row: ScoredRow, { advantages, counts }: AdvantagePart, gradient: Float64Array): void {
    const { mask, weight } = row;
    const { ratio } = this.#kind;
    const byToken = ratio === 'token';
    const scale = weight / this.#normalizer / (1 + this.#clippingBias);
    for (const span of ratioSpans(ratio, mask)) {
      const unitsPerToken = byToken ? 1 : 1 / span.tokens;
      let loss = 0;
      let shared = 0;
      const visited = this.#visit(row, advantages, span, (t, outcome) => {
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

  /** Calls `use` for every token of the span that has an advantage, and counts them. The outcome is only lent. */
  #visit(
    row: ScoredRow,
    advantages: Row,
    span: RatioSpan,
    use: (t: number, outcome: TokenOutcome, ratio: number, advantage: number) => void,
  ): number {
    const { logprobs, oldLogprobs, mask, weights } = row;
    const outcome = this.#outcome;
    const shared = this.#kind.ratio === 'token' ? undefined : Math.exp(this.#logRatio(row, span) - this.#klBaseline);
    let visited = 0;
    for (let t = span.start; t < span.end; t++) {
      if (mask[t] === 0) continue;
      // The loss is homogeneous in the advantage, so a weight on the loss is one on the advantage.
      const advantage = (advantages[t] as number) * (weights === undefined ? 1 : (weights[t] as number));
      if (advantage === 0) continue;
      const ratio = shared ?? Math.exp((logprobs[t] as number) - (oldLogprobs[t] as number));
      this.#kind.token(ratio, advantage, logprobs[t] as number, outcome);
      use(t, outcome, ratio, advantage);
      visited++;
    }
    return visited;
  }
}
