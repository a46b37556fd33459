/** Sums of a policy loss over rows of tokens, so that a mini-batch can come row by row, identical samples as one. */

import { ArgumentError } from '../core/errors.js';
import { countTokens, type Row, rowWeight } from './aggregate.js';
import type { LossKind, TokenOutcome } from './define-loss.js';
import { correctionWeights } from './importance-correction.js';
import type { ImportanceCorrection } from './loss-spec.js';
import type { LossMetrics } from './objective/objective-options.js';

/** A row as the model sees it, without advantages. */
export interface RatioRow {
  readonly logprobs: Row; // [T]
  readonly behaviourLogprobs: Row; // [T]
  readonly mask: Row; // [T]
  /** Needed where importance is corrected. */
  readonly proximalLogprobs?: Row | undefined; // [T]
}

/** A row ready to be summed. */
interface Prepared {
  readonly logprobs: Row;
  readonly behaviourLogprobs: Row;
  /** What ratios are taken to. */
  readonly oldLogprobs: Row;
  readonly mask: Row;
  readonly tokens: number;
  /** Constant factors of the advantages, where importance is corrected. */
  readonly weights: Row | undefined;
  /** Tokens whose importance exceeds the cap. */
  readonly beyond: number;
}

/** Tokens start <= t < end, of which `tokens` were written; those of a turn or of a sequence share a ratio. */
interface Stretch {
  readonly start: number;
  readonly end: number;
  readonly tokens: number;
}

export class LossSums {
  readonly #kind: LossKind;
  readonly #correction: ImportanceCorrection | undefined;
  readonly #normalizer: number;
  readonly #outcome: TokenOutcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
  #tokens = 0;
  /** What clipping is counted in: tokens, or turns or sequences where these share a ratio. */
  #units = 0;
  #clipped = 0;
  #clippedLower = 0;
  #kl = 0;
  #maxRatioDeviation = 0;
  #gap = 0;
  #importance = 0;
  #beyond = 0;
  #leftOut = 0;
  #weighed = 0;
  loss = 0;

  /** @throws ArgumentError when the normalizer is not a number >= 0 */
  constructor(kind: LossKind, correction: ImportanceCorrection | undefined, normalizer: number) {
    if (!(normalizer >= 0)) throw new ArgumentError(`the loss's normalizer must be a number >= 0, got ${normalizer}`);
    this.#kind = kind;
    this.#correction = correction;
    this.#normalizer = normalizer;
  }

  /** Whether every row must have been surveyed before the first is added. */
  get surveys(): boolean {
    return this.#kind.dampensClipping === true;
  }

  /** @throws ArgumentError where importance is to be corrected and the row has no proximal log-probs */
  prepare({ logprobs, behaviourLogprobs, proximalLogprobs, mask }: RatioRow): Prepared {
    const row = { logprobs, behaviourLogprobs, mask, tokens: countTokens(mask) };
    if (this.#correction === undefined)
      return { ...row, oldLogprobs: behaviourLogprobs, weights: undefined, beyond: 0 };
    if (proximalLogprobs === undefined) throw new ArgumentError('loss.importanceCorrection needs proximalLogprobs');
    const correction = correctionWeights({ behaviourLogprobs, proximalLogprobs, mask }, this.#correction);
    return { ...row, oldLogprobs: proximalLogprobs, ...correction };
  }

  /** Counts a sample among those that the clipping bias is the mean over. */
  weigh(mask: Row): void {
    const tokens = countTokens(mask);
    this.#weighed += rowWeight(this.#kind.aggregate, tokens) * tokens;
  }

  /** Measures what clipping leaves out of a row with these advantages. */
  survey(row: Prepared, advantages: Row): void {
    const scale = rowWeight(this.#kind.aggregate, row.tokens);
    for (const stretch of stretchesOf(this.#kind.ratio, row.mask)) {
      this.#visit(row, advantages, stretch, (_, { clipped, clippedLower }, ratio, advantage) => {
        if (clipped || clippedLower) this.#leftOut += scale * ratio * Math.abs(advantage);
      });
    }
  }

  /** Counts a row's tokens and ratios `copies` times in the metrics. */
  observe(row: Prepared, copies: number): void {
    const { logprobs, behaviourLogprobs, oldLogprobs, mask, tokens, weights, beyond } = row;
    for (let t = 0; t < mask.length; t++) {
      if (mask[t] === 0) continue;
      const logRatio = (logprobs[t] as number) - (oldLogprobs[t] as number);
      this.#kl -= copies * logRatio;
      // Not Math.max: a ratio that is not a number must show.
      const deviation = Math.abs(Math.exp(logRatio) - 1);
      this.#gap += copies * Math.abs((logprobs[t] as number) - (behaviourLogprobs[t] as number));
      if (!(deviation <= this.#maxRatioDeviation)) this.#maxRatioDeviation = deviation;
      if (weights !== undefined) this.#importance += copies * (weights[t] as number);
    }
    this.#tokens += copies * tokens;
    this.#beyond += copies * beyond;
    this.#units += copies * (this.#kind.ratio === 'token' ? tokens : stretchesOf(this.#kind.ratio, mask).length);
  }

  /**
   * Adds the loss of a row with these advantages, and its gradient to `gradient` [T].
   * @param counts How many samples' advantages each entry sums up; 1 where it is not given.
   */
  add(row: Prepared, advantages: Row, counts: Row | undefined, gradient: { [t: number]: number }): void {
    const { mask, tokens } = row;
    const own = this.#kind.ratio === 'token';
    const scale = rowWeight(this.#kind.aggregate, tokens) / this.#normalizer / (1 + this.#clippingBias);
    for (const stretch of stretchesOf(this.#kind.ratio, mask)) {
      const unitsPerToken = own ? 1 : 1 / stretch.tokens;
      let loss = 0;
      let shared = 0;
      const visited = this.#visit(row, advantages, stretch, (t, outcome) => {
        loss += outcome.loss;
        if (own) gradient[t] = (gradient[t] as number) + scale * outcome.gradient;
        else shared += outcome.gradient;
        const units = unitsPerToken * (counts === undefined ? 1 : (counts[t] as number));
        if (outcome.clipped) this.#clipped += units;
        if (outcome.clippedLower) this.#clippedLower += units;
      });
      if (visited === 0) continue; // the normalizer may be 0 then
      this.loss += scale * loss;
      if (shared === 0) continue;
      // Every token moves the shared log ratio by 1 / tokens.
      const each = (scale * shared) / stretch.tokens;
      for (let t = stretch.start; t < stretch.end; t++) if (mask[t] !== 0) gradient[t] = (gradient[t] as number) + each;
    }
  }

  metrics(): LossMetrics {
    const units = Math.max(this.#units, 1);
    const tokens = Math.max(this.#tokens, 1);
    return {
      clipFraction: this.#clipped / units,
      clipFractionLower: this.#clippedLower / units,
      approxKl: this.#kl / tokens,
      maxRatioDeviation: this.#maxRatioDeviation,
      logprobGap: this.#gap / Math.max(this.#tokens, 1),
      ...(this.#correction === undefined
        ? {}
        : { importanceWeight: this.#importance / tokens, importanceBeyond: this.#beyond / tokens }),
      ...(this.surveys ? { clippingBias: this.#clippingBias } : {}),
    };
  }

  get #clippingBias(): number {
    return this.#leftOut === 0 ? 0 : this.#leftOut / this.#weighed;
  }

  /** Calls `use` for every token of the stretch that has an advantage, and counts them. The outcome is only lent. */
  #visit(
    { logprobs, oldLogprobs, mask, weights }: Prepared,
    advantages: Row,
    stretch: Stretch,
    use: (t: number, outcome: TokenOutcome, ratio: number, advantage: number) => void,
  ): number {
    const outcome = this.#outcome;
    const logRatio = (t: number) => (logprobs[t] as number) - (oldLogprobs[t] as number);
    const shared = this.#kind.ratio === 'token' ? undefined : Math.exp(meanOver(stretch, mask, logRatio));
    let visited = 0;
    for (let t = stretch.start; t < stretch.end; t++) {
      if (mask[t] === 0) continue;
      // The loss is homogeneous in the advantage, so a weight on the loss is one on the advantage.
      const advantage = (advantages[t] as number) * (weights === undefined ? 1 : (weights[t] as number));
      if (advantage === 0) continue;
      const ratio = shared ?? Math.exp(logRatio(t));
      this.#kind.token(ratio, advantage, logprobs[t] as number, outcome);
      use(t, outcome, ratio, advantage);
      visited++;
    }
    return visited;
  }
}

function meanOver({ start, end, tokens }: Stretch, mask: Row, value: (t: number) => number): number {
  let sum = 0;
  for (let t = start; t < end; t++) if (mask[t] !== 0) sum += value(t);
  return sum / tokens;
}

/** Stretches with at least one written token: the runs of the mask for turns, otherwise the whole row. */
function stretchesOf(ratio: LossKind['ratio'], mask: Row): Stretch[] {
  const tokens = countTokens(mask);
  if (tokens === 0) return [];
  if (ratio !== 'turn') return [{ start: 0, end: mask.length, tokens }];
  const runs: Stretch[] = [];
  for (let t = 0, start = 0; t < mask.length; t++) {
    if (mask[t] === 0) continue;
    if (t === 0 || mask[t - 1] === 0) start = t;
    if (t + 1 === mask.length || mask[t + 1] === 0) runs.push({ start, end: t + 1, tokens: t + 1 - start });
  }
  return runs;
}
