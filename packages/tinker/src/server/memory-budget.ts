/** The memory that adapters and sampling sessions of clients may take, and the disk of their saved weights. */

import type { AdapterSettings, DecoderConfig } from '@drmas/engine/contract';
import { DialectError } from '@drmas/engine/errors';
import { byteText } from '@drmas/engine/host';
import { policyFootprint } from '@drmas/engine/node';

/** Rows of a pass are not counted: they come and go with requests, and the context bounds them. */
const NO_ROWS = { longest: 1, recompute: true };

/** Bytes of an adapter that trains, and of one that is only sampled; of its files, with the optimiser's and without. */
export interface AdapterBytes {
  /** Weights, gradient, the optimiser's moments, and a copy of weights and moments while an update is checked. */
  readonly trained: number;
  readonly sampled: number;
  readonly weightFiles: number;
  readonly trainingFiles: number;
}

/** Bytes of configuration and descriptions beside the tensors of saved weights, at most. */
const DESCRIPTIONS = 65_536;

export function adapterBytes(config: DecoderConfig, adapter: AdapterSettings): AdapterBytes {
  const optimizer = { type: 'adamw', learningRate: 0 };
  const request = { config, adapter, precision: 'float32', optimizer, agents: 1, versions: 1, ...NO_ROWS } as const;
  const { weights, gradients, optimizer: moments } = policyFootprint(request);
  const weightFiles = weights + DESCRIPTIONS;
  return {
    trained: weights + 2 * gradients + 2 * moments,
    sampled: weights,
    weightFiles,
    trainingFiles: weightFiles + moments,
  };
}

/** The largest useful rank of an adapter: a larger one has more rows than each matrix that it adapts. */
export const mostRank = ({ width, heads, headDim, feedForward }: DecoderConfig): number =>
  Math.max(width, heads * headDim, feedForward);

interface Resource {
  readonly name: 'memory' | 'disk';
  readonly flag: string;
}

/** A limit on bytes that clients take together. */
export class ByteBudget {
  readonly #total: number;
  readonly #of: Resource;
  #used: number;

  /** @param total Bytes @param used Bytes that are taken from the beginning */
  constructor(total: number, of: Resource, used = 0) {
    this.#total = total;
    this.#of = of;
    this.#used = used;
  }

  /** Bytes that are not taken. */
  get free(): number {
    return this.#total - this.#used;
  }

  /** @throws DialectError 400 with the needed and the free bytes */
  require(bytes: number, what: string): void {
    if (bytes <= this.free) return;
    const { name, flag } = this.#of;
    throw new DialectError(
      400,
      name,
      `${what} needs ${byteText(bytes)} of ${name}, and ${byteText(Math.max(0, this.free))} of ${byteText(this.#total)} are free (${flag})`,
    );
  }

  /** Takes bytes. Returns a function that gives them back, once. @throws DialectError as `require` does */
  take(bytes: number, what: string): () => void {
    this.require(bytes, what);
    this.change(bytes);
    let taken = bytes;
    return () => {
      this.change(-taken);
      taken = 0;
    };
  }

  /** Counts bytes that were taken, or given back if negative, without a check. */
  change(bytes: number): void {
    this.#used += bytes;
  }
}
