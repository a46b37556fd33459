import { storedBits } from '../../model/formats/stored-bits.js';
import type { TensorPiece } from '../../model/formats/tensor.js';
import { putPiece, type TensorPlace } from '../../model/formats/tensor-place.js';
import type { WeightArray } from '../../tensor/kernel-arguments.js';
import type { Kernels } from '../../tensor/kernels.js';
import { type Floats, isInBfloat16, isOnHost, type WeightMemory } from '../../tensor/memory.js';
import type { DeviceBfloat16s, DeviceFloats, DeviceMemory } from '../../tensor/webgpu/device-memory.js';

type OnDevice = DeviceFloats | DeviceBfloat16s;

/** A device's matrix that comes in pieces: the pieces so far, and the number of values still missing. */
interface Gathering {
  readonly numbers: WeightArray;
  missing: number;
}

/**
 * Puts the pieces of files' tensors into their places. Memory that the host can index gets each piece at once. A device
 * gets whole vectors, and a matrix as soon as all of its pieces have come. Until then the pieces are kept here.
 */
export class Destinations {
  readonly #kernels: Kernels;
  readonly #places: ReadonlyMap<string, TensorPlace<WeightMemory>>;
  readonly #matrices: readonly WeightMemory[];
  readonly #gathering = new Map<OnDevice, Gathering>();

  /** @param matrices The memories that hold the places with a stride or in bfloat16, whole */
  constructor(kernels: Kernels, places: readonly TensorPlace<WeightMemory>[], matrices: readonly WeightMemory[]) {
    this.#kernels = kernels;
    this.#places = new Map(places.map((place) => [place.name, place]));
    this.#matrices = matrices;
  }

  /** Takes a piece. Returns false if no tensor of the model has the piece's name. */
  put(piece: TensorPiece): boolean {
    const place = this.#places.get(piece.name);
    if (place === undefined) return false;
    const { data, stride } = place;
    if (isOnHost(data)) putPiece({ ...place, data }, piece);
    else if (stride === undefined && !isInBfloat16(data)) this.#write(data, place, piece);
    else this.#gather(data, place, piece);
    return true;
  }

  #write(data: Floats, { name, shape }: TensorPlace<WeightMemory>, piece: TensorPiece): void {
    const numbers = new Float32Array(storedBits(piece.bytes, piece.dtype).length);
    putPiece({ name, shape, data: numbers }, { ...piece, first: 0 });
    this.#kernels.write(data.subarray(piece.first, piece.first + numbers.length), numbers);
  }

  #gather(data: OnDevice, place: TensorPlace<WeightMemory>, piece: TensorPiece): void {
    const matrix = this.#matrixOf(data);
    const gathering = this.#gathering.get(matrix) ?? {
      numbers: isInBfloat16(matrix) ? new Uint16Array(matrix.length) : new Float32Array(matrix.length),
      missing: matrix.length,
    };
    this.#gathering.set(matrix, gathering);
    const { numbers } = gathering;
    putPiece({ ...place, data: numbers.subarray(data.offset - matrix.offset) }, piece);
    gathering.missing -= storedBits(piece.bytes, piece.dtype).length;
    if (gathering.missing > 0) return;
    if (isInBfloat16(matrix)) this.#kernels.write(matrix, numbers as Uint16Array);
    else this.#kernels.write(matrix, numbers as Float32Array);
    this.#gathering.delete(matrix);
  }

  #matrixOf(data: OnDevice): OnDevice {
    const holds = (matrix: WeightMemory): matrix is OnDevice =>
      !isOnHost(matrix) && matrix.buffer === data.buffer && within(data, matrix);
    const matrix = this.#matrices.find(holds);
    if (matrix === undefined) throw new RangeError('a place lies in no matrix');
    return matrix;
  }
}

const within = ({ offset }: DeviceMemory, matrix: DeviceMemory) =>
  offset >= matrix.offset && offset < matrix.offset + matrix.length;
