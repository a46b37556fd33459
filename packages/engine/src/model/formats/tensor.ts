import type { BlockFormat } from '../../tensor/blocks.js';
import type { TensorDtype } from './safetensors-header.js';

export interface TensorShape {
  readonly name: string;
  readonly shape: readonly number[];
}

/** A named float32 tensor in row-major order. */
export interface NamedTensor extends TensorShape {
  readonly data: Float32Array;
}

/** Consecutive numbers of a tensor in a file; for a matrix whole rows. */
export interface TensorPiece {
  readonly name: string;
  readonly dtype: TensorDtype;
  /** The index of the piece's first number within the tensor. */
  readonly first: number;
  /** The numbers, little-endian. */
  readonly bytes: Uint8Array;
}

/** All numbers of a tensor, which the engine reads from the file by itself. */
export interface FilePiece extends TensorShape {
  readonly dtype: TensorDtype;
  readonly path: string;
  /** The tensor's first byte in the file. */
  readonly offset: number;
}

/** Consecutive rows of a matrix in blocks, as a file has them. */
export interface BlockPiece {
  readonly name: string;
  readonly format: BlockFormat;
  /** The index of the piece's first row within the matrix. */
  readonly first: number;
  readonly bytes: Uint8Array;
}

/** The length of a tensor's rows; a tensor with one dimension, or none, has rows of one number. */
export function rowLength(shape: readonly number[]): number {
  return shape.slice(1).reduce((a, b) => a * b, 1);
}
