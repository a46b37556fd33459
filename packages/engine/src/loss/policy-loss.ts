import { ArgumentError, type OptionNames, requireKnown } from '../errors.js';
import { assertMask, assertSameShape, hasAdvantage, normalizerOfRows, type TokenNumbers } from './aggregate.js';
import type { LossMetrics } from './loss-metrics.js';
import { type AnyLoss, correctionOf, lossKind } from './loss-spec.js';
import { PolicyLossAccumulator } from './policy-loss-accumulator.js';

/** Rows of tokens; a row's entries where its mask is 0 are ignored. */
export interface PolicyLossInput {
  /** The log-probs under the weights that are updated. */
  readonly logprobs: readonly TokenNumbers[]; // [rows][T]
  /** The log-probs at the time of sampling. */
  readonly behaviourLogprobs: readonly TokenNumbers[]; // [rows][T]
  /** The advantages, which `estimateAdvantages` makes of rewards. */
  readonly advantages: readonly TokenNumbers[]; // [rows][T]
  /** 1 where the policy wrote the token, else 0. */
  readonly mask: readonly TokenNumbers[]; // [rows][T]
  /** The log-probs of the policy that the update begins with; `importanceCorrection` needs them. */
  readonly proximalLogprobs?: readonly TokenNumbers[]; // [rows][T]
  /**
   * The number of tokens that the policy wrote in each row's whole episode, for `episode-mean`. Without it every row is
   * an episode by itself.
   */
  readonly episodeTokens?: readonly number[]; // [rows]
  /** The same of each row's chain, for `chain-mean`. Without it every row is a chain by itself. */
  readonly chainTokens?: readonly number[]; // [rows]
}

/** The options of `policyLoss` beside the settings of the loss. */
export interface PolicyLossOptions {
  /**
   * Divides the summed loss; by default the normalizer of the given rows for the loss's `aggregate`. Give the
   * normalizer of the whole mini-batch to compute its loss in parts.
   */
  readonly normalizer?: number;
  /**
   * The most tokens that a response may have: the constant by which `seq-mean-token-sum-norm` divides the sum of a row
   * before it takes the mean over rows (Dr. GRPO). Without it the sum of all rows is divided by the width of the widest
   * one, its masked tokens included, as the code of the Dr. MAS paper does.
   */
  readonly maxTokens?: number;
  /**
   * The result of the loss's `prepare` for the whole mini-batch, to compute the loss in parts; by default it is
   * computed from the given rows.
   */
  readonly context?: unknown;
  /** The KL that `kto` subtracts from log ratios: short for `context: { klBaseline }`. */
  readonly klBaseline?: number;
}

const OPTIONS: OptionNames<PolicyLossOptions> = { normalizer: true, maxTokens: true, context: true, klBaseline: true };

/** A loss, its gradient with respect to the log-probs, and the loss's metrics. */
export interface PolicyLossResult {
  readonly loss: number;
  /** d loss / d logprobs, 0 where masked. */
  readonly gradient: number[][]; // [rows][T]
  readonly metrics: LossMetrics;
}

/**
 * A policy loss and its gradient with respect to the log-probs.
 * @throws ArgumentError when shapes differ, the mask has other entries than 0 and 1, the spec or an option is wrong, or
 *   log-probs that it needs are missing
 *
 * @example
 * ```ts
 * import { policyLoss } from 'drmas';
 *
 * const rows = { logprobs: [[-0.9]], behaviourLogprobs: [[-1]], advantages: [[1]], mask: [[1]] };
 * const { loss, gradient, metrics } = policyLoss(rows, { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' });
 * ```
 */
export function policyLoss(input: PolicyLossInput, spec: AnyLoss, options: PolicyLossOptions = {}): PolicyLossResult {
  requireKnown(options, OPTIONS);
  const { logprobs, behaviourLogprobs, advantages, mask } = input;
  const correction = correctionOf(spec);
  if (correction !== undefined && input.proximalLogprobs === undefined)
    throw new ArgumentError('loss.importanceCorrection needs proximalLogprobs');
  const proximalLogprobs = input.proximalLogprobs ?? behaviourLogprobs;
  assertSameShape({ logprobs, behaviourLogprobs, advantages, mask, proximalLogprobs });
  assertMask(mask);
  const kind = lossKind(spec);
  const { episodeTokens, chainTokens } = input;
  if (episodeTokens !== undefined) assertSameShape({ mask: [mask], episodeTokens: [episodeTokens] });
  if (chainTokens !== undefined) assertSameShape({ mask: [mask], chainTokens: [chainTokens] });
  const all = mask.map((row, r) => ({ mask: row, episodeTokens: episodeTokens?.[r], chainTokens: chainTokens?.[r] }));
  const counted =
    kind.withoutAdvantage === 'excluded'
      ? all.filter((row, r) => hasAdvantage(row.mask, advantages[r] as TokenNumbers))
      : all;
  const normalizer =
    options.normalizer ??
    normalizerOfRows(
      kind.aggregate,
      counted.map((row) => row.mask),
      options.maxTokens,
      counted,
    );
  const rows = all.map((weighed, r) => ({
    ...weighed,
    behaviourLogprobs: behaviourLogprobs[r] as TokenNumbers,
    proximalLogprobs: proximalLogprobs[r],
    copies: 1,
    parts: [{ advantages: advantages[r] as TokenNumbers }],
  }));
  const { klBaseline, context = klBaseline === undefined ? undefined : { klBaseline } } = options;
  const loss = { kind, correction, normalizer, context };
  const sums = new PolicyLossAccumulator(loss, rows, { sent: all, score: () => logprobs });
  const gradient = logprobs.map((row, r) => Array.from(sums.add(r, row)));
  return { loss: sums.loss, gradient, metrics: sums.metrics() };
}
