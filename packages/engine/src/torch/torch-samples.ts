/** Samples on their way to the worker, and the numbers that come back for their tokens. */
import { requireSequences } from '../model/decoder/packed-batch.js';
import type { Arrays, Frame } from './frames.js';

interface SentSample {
  readonly tokens: Int32Array; // [T]
  readonly mask: Uint8Array; // [T]
  readonly temperature?: number;
  readonly agent?: string;
}

/**
 * Samples as the arguments of a call: tokens and masks one after another.
 * @throws ArgumentError when a sample does not fit the context, or its first token is to be predicted
 */
export function sentSamples(samples: readonly SentSample[], context: number, withAgents: boolean) {
  requireSequences(samples, context);
  const lengths = Int32Array.from(samples, ({ tokens }) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const [tokens, mask] = [new Int32Array(total), new Uint8Array(total)];
  let at = 0;
  for (const sample of samples) {
    tokens.set(sample.tokens, at);
    mask.set(sample.mask, at);
    at += sample.tokens.length;
  }
  const facts = {
    temperatures: samples.map(({ temperature }) => temperature ?? 1),
    ...(withAgents && { agents: samples.map(({ agent }) => agent ?? '') }),
  };
  return { facts, arrays: { lengths, tokens, mask } };
}

/** One row [T] a sample from the rows of all, one after another. */
export function rowsOf(all: Float32Array, samples: readonly { readonly tokens: Int32Array }[]): Float32Array[] {
  let at = 0;
  return samples.map(({ tokens }) => {
    at += tokens.length;
    return all.slice(at - tokens.length, at);
  });
}

/** The scores of a micro-batch: numbers of the written tokens of some samples, one after another. */
export class MicroBatch {
  /** The samples' positions in the caller's list. */
  readonly indices: readonly number[];
  readonly #counts: readonly number[];
  readonly #places: Int32Array;
  readonly #arrays: Arrays;

  constructor({ header, arrays }: Frame) {
    this.indices = header.indices as number[];
    this.#counts = header.counts as number[];
    this.#places = arrays.places as Int32Array;
    this.#arrays = arrays;
  }

  /** The numbers of that name as one row [T] a sample, 0 where nothing is written. */
  rows(name: string, samples: readonly { readonly tokens: Int32Array }[]): Float32Array[] {
    const values = this.#arrays[name] as Float32Array;
    let at = 0;
    return this.indices.map((index, i) => {
      const row = new Float32Array((samples[index] as { tokens: Int32Array }).tokens.length);
      for (const end = at + (this.#counts[i] as number); at < end; at++)
        row[this.#places[at] as number] = values[at] as number;
      return row;
    });
  }

  /** The numbers of the written tokens from one row [T] a sample; 0 without rows. */
  gathered(rows: readonly ArrayLike<number>[] | undefined): Float32Array {
    const values = new Float32Array(this.#places.length);
    if (rows === undefined) return values;
    let at = 0;
    for (const [i, row] of rows.entries())
      for (const end = at + (this.#counts[i] as number); at < end; at++)
        values[at] = row[this.#places[at] as number] as number;
    return values;
  }
}
