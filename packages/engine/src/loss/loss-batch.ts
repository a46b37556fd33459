/**
 * The rows of a mini-batch with the log-probs of the current policy: their ratios, and their tokens with advantages.
 */

import { ArgumentError } from '../errors.js';
import { countTokens, rowWeight, type TokenNumbers, type WeighedRow } from './aggregate.js';
import type { LossBatch, LossFacts, LossToken } from './define-loss.js';
import type { Aggregation, ImportanceCorrection } from './loss-settings.js';
import { type RatioSpan, ratioSpans, sharedLogRatio } from './ratio-spans.js';

/** Advantages of samples that are identical otherwise. */
export interface AdvantagePart {
  readonly advantages: TokenNumbers; // [T]
  /** The number of samples whose advantages each entry sums up; 1 by default. */
  readonly counts?: TokenNumbers; // [T]
}

/** A row before the log-probs of the current policy are known. */
export interface LossRow extends WeighedRow {
  readonly behaviourLogprobs: TokenNumbers; // [T]
  /** Needed by a loss with importance correction. */
  readonly proximalLogprobs?: TokenNumbers | undefined; // [T]
  /** The number of identical samples that the row stands for. */
  readonly copies: number;
  readonly parts: readonly AdvantagePart[];
}

export interface ScoredRow {
  readonly logprobs: TokenNumbers;
  readonly behaviourLogprobs: TokenNumbers;
  /** The log-probs in the denominator of the ratios. */
  readonly oldLogprobs: TokenNumbers;
  readonly mask: TokenNumbers;
  /** The number of written tokens. */
  readonly tokens: number;
  /** The weight of each token in the aggregation, before the normalizer. */
  readonly weight: number;
  /** Constant factors of the advantages; undefined without importance correction. */
  readonly weights: TokenNumbers | undefined;
  readonly beyond: number;
}

export interface RowReading {
  readonly ratio: LossFacts['ratio'];
  readonly aggregate: Aggregation;
  readonly correction: ImportanceCorrection | undefined;
}

/** A row with its log-probs [T]. @throws ArgumentError when it lacks proximal log-probs that the loss needs */
export function scoredRow({ aggregate, correction }: RowReading, plain: LossRow, logprobs: TokenNumbers): ScoredRow {
  const { behaviourLogprobs, proximalLogprobs, mask } = plain;
  const tokens = countTokens(mask);
  const row = { logprobs, behaviourLogprobs, mask, tokens, weight: rowWeight(aggregate, tokens, plain) };
  if (correction === undefined) return { ...row, oldLogprobs: behaviourLogprobs, weights: undefined, beyond: 0 };
  if (proximalLogprobs === undefined) throw new ArgumentError('loss.importanceCorrection needs proximalLogprobs');
  const corrected = correctionWeights({ behaviourLogprobs, proximalLogprobs, mask }, correction);
  return { ...row, oldLogprobs: proximalLogprobs, ...corrected };
}

/**
 * @param sent All rows of the batch, also those that do not go through the model
 * @param score The current policy's log-probs of `rows`; called at the first use, and once
 */
export function lossBatch(
  reading: RowReading,
  rows: readonly LossRow[],
  { sent, score }: { readonly sent: readonly WeighedRow[]; readonly score: () => readonly TokenNumbers[] },
): LossBatch {
  let known: readonly ScoredRow[] | undefined;
  const scored = () => {
    if (known !== undefined) return known;
    const logprobs = score();
    known = rows.map((row, r) => scoredRow(reading, row, logprobs[r] as TokenNumbers));
    return known;
  };
  const { ratio, aggregate } = reading;
  return {
    forEachRatio(use) {
      for (const [r, row] of scored().entries()) {
        const { copies } = rows[r] as LossRow;
        for (const span of ratioSpans(ratio, row.mask)) {
          if (ratio !== 'token') use(spanLogRatio(ratio, row, span), copies);
          else for (let t = span.start; t < span.end; t++) if (row.mask[t] !== 0) use(logRatioAt(row, t), copies);
        }
      }
    },
    forEachToken(use) {
      const token = { ratio: 1, logRatio: 0, advantage: 0, logprob: 0 };
      for (const [r, row] of scored().entries())
        for (const { advantages } of (rows[r] as LossRow).parts)
          for (const span of ratioSpans(ratio, row.mask))
            visitTokens({ ratio, row, advantages, span, token }, () => use(token, row.weight));
    },
    get weight() {
      let sum = 0;
      for (const row of sent) {
        const tokens = countTokens(row.mask);
        sum += rowWeight(aggregate, tokens, row) * tokens;
      }
      return sum;
    },
  };
}

/**
 * Fills `token` and calls `use` for every token of the span that has an advantage.
 * @returns The number of these tokens
 */
export function visitTokens(
  {
    ratio,
    row,
    advantages,
    span,
    token,
  }: { ratio: LossFacts['ratio']; row: ScoredRow; advantages: TokenNumbers; span: RatioSpan; token: LossToken },
  use: (t: number) => void,
): number {
  const { logprobs, mask, weights } = row;
  const shared = ratio !== 'token';
  if (shared) {
    token.logRatio = spanLogRatio(ratio, row, span);
    token.ratio = Math.exp(token.logRatio);
  }
  let visited = 0;
  for (let t = span.start; t < span.end; t++) {
    if (mask[t] === 0) continue;
    // The loss is homogeneous in the advantage, so a weight on the loss equals a weight on the advantage.
    token.advantage = (advantages[t] as number) * (weights === undefined ? 1 : (weights[t] as number));
    if (token.advantage === 0) continue;
    token.logprob = logprobs[t] as number;
    if (!shared) {
      token.logRatio = logRatioAt(row, t);
      token.ratio = Math.exp(token.logRatio);
    }
    use(t);
    visited++;
  }
  return visited;
}

const logRatioAt = ({ logprobs, oldLogprobs }: ScoredRow, t: number): number =>
  (logprobs[t] as number) - (oldLogprobs[t] as number);

const spanLogRatio = (ratio: LossFacts['ratio'], row: ScoredRow, span: RatioSpan): number =>
  sharedLogRatio(ratio, span, row.mask, (t) => logRatioAt(row, t));

// The importance correction for samples of another policy: the loss of every token is weighted with a constant made of
// ρ = p_proximal / p_behaviour. Truncated at the cap (TIS: Yao et al. 2025, "Your efficient RL framework secretly
// brings you off-policy RL training") or 0 above it (MIS: Liu et al. 2025, "When speed kills stability: demystifying RL
// collapse from the training-inference mismatch"), by token or by sequence, as both describe. The ratio to the proximal
// policy is the decoupled objective of Hilton et al. 2022, "Batch size-invariance for policy optimization".

interface CorrectionWeights {
  readonly weights: Float64Array; // [T], 0 where masked
  /** The number of response tokens whose ρ exceeds the cap. */
  readonly beyond: number;
}

/** The weights of a row. @throws ArgumentError when the cap is not positive */
export function correctionWeights(
  {
    behaviourLogprobs,
    proximalLogprobs,
    mask,
  }: Readonly<Record<'behaviourLogprobs' | 'proximalLogprobs' | 'mask', TokenNumbers>>,
  { cap, beyond, level }: ImportanceCorrection,
): CorrectionWeights {
  if (!(cap > 0)) throw new ArgumentError(`loss.importanceCorrection.cap must be greater than 0, got ${cap}`);
  const logs = Float64Array.from(mask, (written, t) =>
    written === 0 ? 0 : (proximalLogprobs[t] as number) - (behaviourLogprobs[t] as number),
  );
  const whole = level === 'sequence' ? logs.reduce((sum, log) => sum + log, 0) : undefined;
  let over = 0;
  const weights = logs.map((log, t) => {
    if (mask[t] === 0) return 0;
    const rho = Math.exp(whole ?? log);
    if (!(rho > cap)) return rho;
    over++;
    return beyond === 'truncate' ? cap : 0;
  });
  return { weights, beyond: over };
}
