/** States that are being loaded from files into the engine's buffers, piece by piece, so that no second copy exists. */

import { BackendError } from '../../errors.js';
import type { FlatOptimizer } from '../../model/decoder/flat-optimizer.js';
import { type DecoderTensors, tensorsInOrder } from '../../model/decoder/weights/decoder-tensors.js';
import { BlockWeights, type ModelWeights, TrunkWeights } from '../../model/decoder/weights/model-weights.js';
import { adapterPlaces, agentTensor } from '../../model/formats/adapter-layout.js';
import { type BlockPlace, blockPlaces, decoderPlaces, vectorPlaces } from '../../model/formats/decoder-layout.js';
import { putBlocks } from '../../model/formats/gguf/gguf-blocks.js';
import { storedBits } from '../../model/formats/safetensors-header.js';
import type { BlockPiece, TensorPiece } from '../../model/formats/tensor.js';
import { putPiece, type TensorPlace } from '../../model/formats/tensor-place.js';
import type { BlockMatrix } from '../../tensor/blocks.js';
import type { DeviceBfloat16s, DeviceFloats, DeviceMemory } from '../../tensor/device-memory.js';
import type { WeightArray } from '../../tensor/kernel-arguments.js';
import type { Kernels } from '../../tensor/kernels.js';
import { type Floats, isInBfloat16, isOnHost, type WeightMemory } from '../../tensor/memory.js';
import type { OptimizerHeader } from '../stored-state.js';

/** The model that a state belongs to. Models of all kinds in an engine have different numbers. */
export interface StateOwner {
  readonly kind: 'base' | 'policy' | 'critic';
  readonly id: number;
}

/** An optimiser's state. Its buffers, which have these names, will come in pieces. */
export interface IncomingOptimizer extends OptimizerHeader {
  readonly buffers: readonly string[];
}

interface IncomingState {
  readonly destinations: Destinations;
  readonly weights: ModelWeights;
}

export class IncomingStates {
  readonly #kernels: Kernels;
  readonly #states = new Map<number, IncomingState>();

  constructor(kernels: Kernels) {
    this.#kernels = kernels;
  }

  /** Begins to load weights and an optimiser's state. An optimiser without a stored state is reset. */
  begin(
    owner: StateOwner,
    weights: ModelWeights,
    remembered: { readonly optimizer: FlatOptimizer; readonly state: IncomingOptimizer | undefined } | undefined,
  ): void {
    const places: TensorPlace<WeightMemory>[] = weightPlaces(weights);
    if (remembered?.state === undefined) remembered?.optimizer.reset();
    else places.push(...optimizerPlaces(remembered.optimizer, remembered.state));
    const destinations = new Destinations(this.#kernels, places, matricesOf(weights), placesInBlocks(weights));
    this.#states.set(owner.id, { weights, destinations });
  }

  take(owner: StateOwner, piece: TensorPiece | BlockPiece): void {
    const put = this.#states.get(owner.id)?.destinations.put(piece) ?? false;
    if (!put) throw new BackendError(`tensor "${piece.name}" has no place in a ${owner.kind}`);
  }

  /** To be called whether or not all pieces came. */
  end(owner: StateOwner): void {
    const weights = this.#states.get(owner.id)?.weights;
    (weights?.trained ?? weights?.decoder)?.changed();
    this.#states.delete(owner.id);
  }
}

/**
 * The places of a decoder's tensors, or of its adapter's tensors if it has one, or of a trunk's with its agents'
 * adapters. They have the names in files; tensors of agents' adapters have those of `agentTensor`.
 */
function weightPlaces({ decoder, adapter, trained }: ModelWeights): TensorPlace<WeightMemory>[] {
  const { config } = decoder;
  if (trained instanceof TrunkWeights) {
    const ofAgents = [...trained.adapters].flatMap(([agent, { tensors, settings }]) =>
      adapterPlaces(tensors, config, settings).map((place) => ({ ...place, name: agentTensor(agent, place.name) })),
    );
    return [...decoderPlaces(trained.trunk.tensors, config), ...ofAgents];
  }
  if (adapter !== undefined) return adapterPlaces(adapter.tensors, config, adapter.settings);
  const tensors: DecoderTensors = decoder.tensors;
  return decoder instanceof BlockWeights ? vectorPlaces(tensors, config) : decoderPlaces(tensors, config);
}

/** The places of matrices in blocks; none if the model that is loaded has none. */
const placesInBlocks = ({ decoder, adapter }: ModelWeights): readonly BlockPlace[] =>
  adapter === undefined && decoder instanceof BlockWeights ? blockPlaces(decoder.matrices, decoder.config) : [];

function matricesOf({ decoder, adapter }: ModelWeights): readonly WeightMemory[] {
  if (adapter !== undefined)
    return adapter.tensors.layers.flatMap((layer) => Object.values(layer).flatMap(({ A, B }) => [A, B]));
  if (decoder instanceof BlockWeights) return []; // they are on the host
  return tensorsInOrder<WeightMemory, Floats>(decoder.tensors);
}

function optimizerPlaces(
  optimizer: FlatOptimizer,
  { type, step, buffers }: IncomingOptimizer,
): TensorPlace<WeightMemory>[] {
  return [...optimizer.restoreInto(type, step, buffers)].map(([name, data]) => ({ name, shape: [data.length], data }));
}

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
class Destinations {
  readonly #kernels: Kernels;
  readonly #places: ReadonlyMap<string, TensorPlace<WeightMemory>>;
  readonly #matrices: readonly WeightMemory[];
  readonly #inBlocks: ReadonlyMap<string, BlockPlace>;
  readonly #gathering = new Map<OnDevice, Gathering>();

  /** @param matrices The memories that hold the places with a stride or in bfloat16, whole */
  constructor(
    kernels: Kernels,
    places: readonly TensorPlace<WeightMemory>[],
    matrices: readonly WeightMemory[],
    inBlocks: readonly BlockPlace[],
  ) {
    this.#inBlocks = new Map(inBlocks.map((place) => [place.name, place]));
    this.#kernels = kernels;
    this.#places = new Map(places.map((place) => [place.name, place]));
    this.#matrices = matrices;
  }

  /** Takes a piece. Returns false if no tensor of the model has the piece's name. */
  put(piece: TensorPiece | BlockPiece): boolean {
    if ('format' in piece) return this.#putBlocks(piece);
    const place = this.#places.get(piece.name);
    if (place === undefined) return false;
    const { data, stride } = place;
    if (isOnHost(data)) putPiece({ ...place, data }, piece);
    else if (stride === undefined && !isInBfloat16(data)) this.#write(data, place, piece);
    else this.#gather(data, place, piece);
    return true;
  }

  #putBlocks({ name, format, first, bytes }: BlockPiece): boolean {
    const place = this.#inBlocks.get(name);
    if (place === undefined || place.matrix.format !== format) return false;
    putBlocks(place.matrix as BlockMatrix<Int32Array>, place.firstOutput + first, bytes);
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
