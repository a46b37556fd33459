/**
 * The exact merging of identical rows. Siblings of a group often write the very same response to the very same prompt:
 * one forward pass then serves them all. A policy loss is positively homogeneous in the advantage (define-loss.ts) and
 * linear in its tokens, so all copies of a row give the same loss and gradient as two virtual rows: one with the sums
 * of the positive advantages, one with the sums of the negative advantages. Rows whose advantages are all 0 add nothing
 * and are left out. Their tokens stay in the normalizer, which counts the samples before merging. A chain of turns is
 * merged as a whole.
 */
import { ArgumentError } from '../../errors.js';
import type { Span, TrainingSample } from '../../nouns.js';
import { assertSameShape, hasAdvantage, normalizerOfRows } from '../aggregate.js';
import type { LossFacts } from '../define-loss.js';
import { type AnyLoss, lossKind } from '../loss-spec.js';
import { partOf, rowsOfSample, type SampleRow } from './sample-rows.js';

/** Advantages of one sign, summed over the copies of a row. */
export interface MergedPart {
  readonly advantages: Float64Array; // [T]
  /** How many copies gave token t an advantage of this sign. */
  readonly counts: Uint32Array; // [T]
}

export interface MergedRow extends SampleRow {
  /** One or two parts; none if no copy has an advantage and other terms keep the row. */
  readonly parts: readonly MergedPart[];
  /** The number of samples that the row stands for; without those that have no advantage, unless these are `scored`. */
  readonly copies: number;
}

export interface MergedSample {
  /** The first of the identical samples. Do not use its `advantages`; use the advantages of the rows. */
  readonly sample: TrainingSample;
  /** Its rows with an advantage other than 0, at least one. */
  readonly rows: readonly MergedRow[];
  /** The positions of all copies in the list that was merged. */
  readonly indices: readonly number[];
}

/**
 * Merges samples of one agent whose tokens, mask, spans, temperature, length of the episode and (where the mask is 1)
 * all log-probs are identical, in order of first appearance.
 * @param withoutAdvantage The treatment of rows without any advantage, as losses declare it: `counted` leaves out a row
 *   if no copy has an advantage, `scored` keeps it, `excluded` also leaves out each copy without one
 * @throws ArgumentError when a sample's arrays differ in length or its spans do not fit
 */
export function mergeSamples(
  samples: readonly TrainingSample[],
  withoutAdvantage: LossFacts['withoutAdvantage'] = 'counted',
): MergedSample[] {
  const byHash = new Map<number, number[][]>();
  const groups: number[][] = [];
  samples.forEach((sample, index) => {
    const { tokens, mask, behaviourLogprobs, advantages } = sample;
    const { referenceLogprobs = tokens, proximalLogprobs = tokens } = sample;
    assertSameShape({
      tokens: [tokens],
      mask: [mask],
      behaviourLogprobs: [behaviourLogprobs],
      advantages: [advantages],
      referenceLogprobs: [referenceLogprobs],
      proximalLogprobs: [proximalLogprobs],
    });
    if (withoutAdvantage === 'excluded' && !hasAdvantage(mask, advantages)) return;
    const hash = hashOf(sample);
    const bucket = byHash.get(hash) ?? [];
    const group = bucket.find(([first]) => identical(samples[first as number] as TrainingSample, sample));
    if (group !== undefined) {
      group.push(index);
      return;
    }
    const fresh = [index];
    bucket.push(fresh);
    byHash.set(hash, bucket);
    groups.push(fresh);
  });
  return groups.flatMap((indices) => {
    const copies = indices.map((index) => samples[index] as TrainingSample);
    const sample = copies[0] as TrainingSample;
    const rows = rowsOfSample(sample).flatMap((row): MergedRow[] => {
      const counted =
        withoutAdvantage === 'scored'
          ? copies
          : copies.filter(({ advantages }) => hasAdvantage(row.mask, partOf(advantages, row.span)));
      const parts = [sumOf(counted, row, 1), sumOf(counted, row, -1)].filter((part) => part !== undefined);
      return parts.length === 0 && withoutAdvantage !== 'scored' ? [] : [{ ...row, parts, copies: counted.length }];
    });
    return rows.length === 0 ? [] : [{ sample, rows, indices }];
  });
}

/**
 * The normalizer of a complete mini-batch. It counts rows without advantage, unless the loss excludes them.
 * @param maxTokens The most tokens of a response, the constant of `seq-mean-token-sum-norm`
 */
export function normalizerOf(samples: readonly TrainingSample[], spec: AnyLoss, maxTokens: number): number {
  const { aggregate, withoutAdvantage } = lossKind(spec);
  const counted = samples.flatMap((sample) =>
    rowsOfSample(sample).filter(
      ({ mask, span }) => withoutAdvantage !== 'excluded' || hasAdvantage(mask, partOf(sample.advantages, span)),
    ),
  );
  return normalizerOfRows(
    aggregate,
    counted.map(({ mask }) => mask),
    maxTokens,
    counted,
  );
}

function sumOf(copies: readonly TrainingSample[], { mask, span }: SampleRow, sign: 1 | -1): MergedPart | undefined {
  const { length } = mask;
  const advantages = new Float64Array(length);
  const counts = new Uint32Array(length);
  let any = false;
  for (const copy of copies) {
    const row = partOf(copy.advantages, span);
    for (let t = 0; t < length; t++) {
      const advantage = row[t] as number;
      if (mask[t] === 0) continue;
      if (Number.isNaN(advantage)) throw new ArgumentError(`an advantage of agent ${copy.agent} is not a number`);
      if (sign * advantage <= 0) continue;
      advantages[t] = (advantages[t] as number) + advantage;
      counts[t] = (counts[t] as number) + 1;
      any = true;
    }
  }
  return any ? { advantages, counts } : undefined;
}

function identical(a: TrainingSample, b: TrainingSample): boolean {
  if (a.agent !== b.agent || a.temperature !== b.temperature || a.tokens.length !== b.tokens.length) return false;
  if (a.episodeTokens !== b.episodeTokens || !sameSpans(a.spans, b.spans)) return false;
  for (let t = 0; t < a.tokens.length; t++) {
    if (a.tokens[t] !== b.tokens[t] || a.mask[t] !== b.mask[t]) return false;
    if (a.mask[t] === 0) continue;
    if (a.behaviourLogprobs[t] !== b.behaviourLogprobs[t]) return false;
    if (a.proximalLogprobs?.[t] !== b.proximalLogprobs?.[t]) return false;
    if (a.referenceLogprobs?.[t] !== b.referenceLogprobs?.[t]) return false;
  }
  return true;
}

function sameSpans(a: readonly Span[] | undefined, b: readonly Span[] | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.length === b.length && a.every(({ start, end }, i) => start === b[i]?.start && end === b[i]?.end);
}

/** FNV-1a over the tokens; equality is checked afterwards. */
function hashOf({ tokens }: TrainingSample): number {
  let hash = 0x811c9dc5;
  for (let t = 0; t < tokens.length; t++) hash = Math.imul(hash ^ (tokens[t] as number), 0x01000193);
  return hash;
}
