/** The rows of the loss in a sample: the sample itself, or the responses of a chain's turns. */
import { ArgumentError } from '../../errors.js';
import type { Span, TrainingSample } from '../../nouns.js';
import { countTokens, type Wholes } from '../aggregate.js';

export interface SampleRow extends Wholes {
  readonly span: Span;
  readonly mask: Uint8Array; // [T], of the span alone
}

/**
 * The rows of a sample, in order: each turn of a chain weighs by itself, as if it were a sample of its own.
 * @throws ArgumentError when the spans of a chain overlap, leave the sequence or leave out a written token
 */
export function rowsOfSample({ tokens, mask, spans, agent, episodeTokens }: TrainingSample): SampleRow[] {
  if (spans === undefined) return [{ span: { start: 0, end: tokens.length }, mask, episodeTokens }];
  const chainTokens = countTokens(mask);
  let covered = 0;
  let last = 0;
  const rows = spans.map((span) => {
    const { start, end } = span;
    if (!(start >= last && end >= start && end <= tokens.length))
      throw new ArgumentError(
        `a chain of agent ${agent} has a span from ${start} to ${end}: expected spans in order within ${tokens.length} tokens`,
      );
    last = end;
    const row = mask.subarray(start, end);
    covered += countTokens(row);
    return { span, mask: row, chainTokens, episodeTokens };
  });
  if (covered < chainTokens)
    throw new ArgumentError(`a chain of agent ${agent} has ${chainTokens - covered} written tokens outside its spans`);
  return rows;
}

/** The part of an array [T] of a sample that belongs to a row. */
export const partOf = <T extends Float32Array | Float64Array | Uint8Array>(all: T, { start, end }: Span): T =>
  (start === 0 && end === all.length ? all : all.subarray(start, end)) as T;
