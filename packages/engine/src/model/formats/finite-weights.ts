import { CheckpointError } from '../../errors.js';
import { BLOCK } from '../../tensor/blocks.js';
import { firstInfiniteBlock } from './gguf/gguf-blocks.js';
import type { StoredTensor } from './safetensors.js';
import { storedBits } from './safetensors-header.js';
import { rowLength, type TensorPiece } from './tensor.js';

/**
 * Wraps a tensor so that its pieces are checked while they are read: one NaN or infinite weight would silently make
 * every result useless.
 * @throws CheckpointError from `pieces`, naming file, tensor and the place of the first such number
 */
export function finiteWeights(tensor: StoredTensor, file: string): StoredTensor {
  async function* pieces(pieceBytes?: number) {
    for await (const piece of tensor.pieces(pieceBytes)) {
      const at = firstNotFinite(piece);
      if (at >= 0) throw new CheckpointError(problemAt(tensor, piece.first + at, file));
      yield piece;
    }
  }
  const { blocks } = tensor;
  return { ...tensor, pieces, blocks: blocks && { ...blocks, pieces: () => finiteBlocks(tensor, blocks, file) } };
}

async function* finiteBlocks(tensor: StoredTensor, blocks: NonNullable<StoredTensor['blocks']>, file: string) {
  const columns = rowLength(tensor.shape);
  for await (const piece of blocks.pieces()) {
    const block = firstInfiniteBlock(piece.format, piece.bytes);
    if (block >= 0) throw new CheckpointError(problemAt(tensor, piece.first * columns + block * BLOCK, file));
    yield piece;
  }
}

function problemAt({ name, shape }: StoredTensor, at: number, file: string): string {
  const columns = rowLength(shape);
  const place = shape.length < 2 ? [at] : [Math.floor(at / columns), at % columns];
  return `${file}: tensor "${name}": expected finite numbers, found another at [${place.join(', ')}]`;
}

/** The index in the piece of the first number that is not finite, or -1. */
function firstNotFinite({ dtype, bytes }: TensorPiece): number {
  const bits = storedBits(bytes, dtype);
  // The bits of the exponent, which are all 1 in infinities and NaN.
  const exponent = bits instanceof Uint16Array ? 0x7f80 : 0x7f800000;
  for (let i = 0; i < bits.length; i++) if (((bits[i] as number) & exponent) === exponent) return i;
  return -1;
}
