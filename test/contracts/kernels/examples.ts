import type { AdamWStep, Heads, WeightArray } from '@drmas/engine/internal/tensor/kernel-arguments';
import type { HostKernels } from '@drmas/engine/kernels';
import { noise } from './support.js';

/** Sizes of a small decoder: several blocks of rows, and no whole number of vectors. */
const SIZES = {
  rows: 257,
  inputs: 64,
  outputs: 172,
  width: 64,
  feedForward: 172,
  vocabSize: 139,
  capacity: 100,
  sequences: 4,
  length: 257 * 64,
  heads: { heads: 4, kvHeads: 2, headDim: 16 },
};

export const SETTINGS: AdamWStep = {
  learningRate: 1e-3,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  weightDecay: 0.01,
  step: 3,
  gradientScale: 0.7,
};

type Written = WeightArray | Int32Array;

export interface KernelOutputs {
  /** Outputs in a layout that all implementations share, by kernel, argument and flags. */
  readonly shared: Map<string, Written>;
  /** Outputs in a private layout: packed matrices and caches. */
  readonly private: Map<string, Written>;
}

/** Makes the arguments of one kernel: the functions that the manifest's expressions call. */
export class Examples {
  readonly kernels: HostKernels;
  readonly sizes = SIZES;
  readonly #outputs: KernelOutputs;
  readonly #key: string;
  #numbers: Float32Array = new Float32Array();
  #next = 0;

  constructor(kernels: HostKernels, key: string, outputs: KernelOutputs) {
    this.kernels = kernels;
    this.#key = key;
    this.#outputs = outputs;
  }

  /** Uniform in [-1, 1). */
  noise(): number {
    if (this.#next % DRAWS === 0) this.#numbers = noise(DRAWS, `${this.#key}, ${this.#next / DRAWS}`);
    return this.#numbers[this.#next++ % DRAWS] as number;
  }

  /** A whole number in [0, limit). */
  below(limit: number): number {
    return Math.floor(((this.noise() + 1) / 2) * limit);
  }

  quotient(a: number, b: number): number {
    return Math.floor(a / b);
  }

  floats(length: number, contents: (r: number) => number): Float32Array {
    const buffer = this.kernels.allocate(length);
    for (let r = 0; r < length; r++) buffer[r] = contents(r);
    return buffer;
  }

  integers(length: number, contents: (r: number) => number): Int32Array {
    const buffer = this.kernels.allocateIntegers(length);
    for (let r = 0; r < length; r++) buffer[r] = contents(r);
    return buffer;
  }

  bfloat16(length: number, contents: (r: number) => number): Uint16Array {
    const buffer = this.kernels.allocateBfloat16(length);
    const exact = Float32Array.from({ length }, (_, r) => contents(r));
    const bits = new Uint32Array(exact.buffer);
    for (let r = 0; r < length; r++) buffer[r] = (bits[r] as number) >>> 16;
    return buffer;
  }

  /** Offsets of sequences that are about equally long. */
  offsets(sequences: number, rows: number): Int32Array {
    return this.integers(sequences + 1, (s) => Math.floor((s * rows) / sequences));
  }

  packedMatrix(inputs: number, outputs: number): Float32Array {
    const packed = this.kernels.allocate(this.kernels.packedSize({ inputs, outputs }));
    const weight = this.floats(inputs * outputs, () => this.noise());
    this.kernels.pack({ packed, weight, inputs, outputs, transpose: false });
    return packed;
  }

  packedMatrixBfloat16(inputs: number, outputs: number): Uint16Array {
    const packed = this.kernels.allocateBfloat16(this.kernels.packedSize({ inputs, outputs }));
    const weight = this.bfloat16(inputs * outputs, () => this.noise());
    this.kernels.pack({ packed, weight, inputs, outputs, transpose: false });
    return packed;
  }

  bfloat16PackedMatrix(inputs: number, outputs: number): Uint16Array {
    const packed = this.kernels.allocateBfloat16(this.kernels.bfloat16PackedSize({ inputs, outputs }));
    const weight = this.floats(inputs * outputs, () => this.noise());
    this.kernels.bfloat16Pack({ packed, weight, inputs, outputs, transpose: false });
    return packed;
  }

  keep(name: string, written: Written): void {
    this.#outputs.shared.set(name, written);
  }

  keepPrivate(name: string, written: Written): void {
    this.#outputs.private.set(name, written);
  }
}

const DRAWS = 4096;

/** One more than the largest index. */
export const indexed = (indices: Int32Array): number => 1 + indices.reduce((most, index) => Math.max(most, index), 0);

export const qkvWidth = ({ heads, kvHeads, headDim }: Heads): number => (heads + 2 * kvHeads) * headDim;
