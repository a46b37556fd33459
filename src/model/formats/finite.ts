import { CheckpointError } from '../../core/errors.js';
import type { StoredTensor } from './safetensors.js';
import { storedBits } from './stored-bits.js';
import { rowLength, type TensorPiece } from './tensor.js';

/**
 * The tensor, whose pieces are looked through as they come: a weight that is no finite number makes every result useless, and
 * says nothing until then.
 * @throws CheckpointError naming file, tensor and the first such number's place, from `pieces`
 */
export function finiteWeights(tensor: StoredTensor, file: string): StoredTensor {
  async function* pieces(pieceBytes?: number) {
    for await (const piece of tensor.pieces(pieceBytes)) {
      const at = firstNotFinite(piece);
      if (at >= 0) throw new CheckpointError(problemAt(tensor, piece.first + at, file));
      yield piece;
    }
  }
  return { ...tensor, pieces };
}

function problemAt({ name, shape }: StoredTensor, at: number, file: string): string {
  const columns = rowLength(shape);
  const place = shape.length < 2 ? [at] : [Math.floor(at / columns), at % columns];
  return `${file}: tensor "${name}": expected finite numbers, found another at [${place.join(', ')}]`;
}

/** Index in the piece, or -1. */
function firstNotFinite({ dtype, bytes }: TensorPiece): number {
  const bits = storedBits(bytes, dtype);
  // The exponent's bits: all 1 in infinities and in what is not a number.
  const exponent = bits instanceof Uint16Array ? 0x7f80 : 0x7f800000;
  for (let i = 0; i < bits.length; i++) if (((bits[i] as number) & exponent) === exponent) return i;
  return -1;
}
