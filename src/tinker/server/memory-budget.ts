/** The memory that adapters and sampling sessions of clients may take. */
import { DialectError } from '../../base/errors.js';
import { byteText } from '../../base/host.js';
import type { AdapterSettings, DecoderConfig } from '../../engine/contract.js';
import { policyFootprint } from '../../engine/embedded.js';

/** Rows of a pass are not counted: they come and go with requests, and the context bounds them. */
const NO_ROWS = { longest: 1, recompute: true };

/** Bytes of an adapter that trains, or of one that is only sampled. */
export interface AdapterBytes {
  /** Weights, gradient, the optimiser's moments, and a copy of weights and moments while an update is checked. */
  readonly trained: number;
  readonly sampled: number;
}

export function adapterBytes(config: DecoderConfig, adapter: AdapterSettings): AdapterBytes {
  const optimizer = { type: 'adamw', learningRate: 0 };
  const request = { config, adapter, precision: 'float32', optimizer, agents: 1, versions: 1, ...NO_ROWS } as const;
  const { weights, gradients, optimizer: moments } = policyFootprint(request);
  return { trained: weights + 2 * gradients + 2 * moments, sampled: weights };
}

/** The largest useful rank of an adapter: a larger one has more rows than each matrix that it adapts. */
export const mostRank = ({ width, heads, headDim, feedForward }: DecoderConfig): number =>
  Math.max(width, heads * headDim, feedForward);

export class MemoryBudget {
  readonly #total: number;
  #used = 0;

  /** @param total Bytes */
  constructor(total: number) {
    this.#total = total;
  }

  /** Bytes that are not taken. */
  get free(): number {
    return this.#total - this.#used;
  }

  /** @throws DialectError 400 with the needed and the free memory */
  require(bytes: number, what: string): void {
    if (bytes <= this.free) return;
    throw new DialectError(
      400,
      'memory',
      `${what} needs ${byteText(bytes)} of memory, and ${byteText(Math.max(0, this.free))} of ${byteText(this.#total)} are free (--memory)`,
    );
  }

  /** Takes memory. Returns a function that gives it back, once. @throws DialectError as `require` does */
  take(bytes: number, what: string): () => void {
    this.require(bytes, what);
    this.#used += bytes;
    let taken = bytes;
    return () => {
      this.#used -= taken;
      taken = 0;
    };
  }
}
