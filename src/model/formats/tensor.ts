import type { TensorDtype } from './safetensors-header.js';

/** What a tensor is called and how large it is. */
export interface TensorShape {
  readonly name: string;
  readonly shape: readonly number[];
}

/** A float32 tensor with its name, row-major. */
export interface NamedTensor extends TensorShape {
  readonly data: Float32Array;
}

/** A part of a tensor in a file: numbers that stand one after the other. */
export interface TensorPiece {
  readonly name: string;
  readonly dtype: TensorDtype;
  /** Which of the tensor's numbers is the first of these; of a matrix the first of a row. */
  readonly first: number;
  /** Little-endian; of a matrix whole rows. */
  readonly bytes: Uint8Array;
}

/** Numbers in a row of a tensor; one that has a single dimension, or none, has rows of one. */
export function rowLength(shape: readonly number[]): number {
  return shape.slice(1).reduce((a, b) => a * b, 1);
}
