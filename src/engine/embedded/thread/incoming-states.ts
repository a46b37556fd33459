/** States that are being loaded from files into the engine's buffers, piece by piece, so that no second copy exists. */
import { BackendError } from '../../../base/errors.js';
import type { FlatOptimizer } from '../../model/decoder/flat-optimizer.js';
import { type DecoderTensors, tensorsInOrder } from '../../model/decoder/weights/decoder-tensors.js';
import type { ModelWeights } from '../../model/decoder/weights/model-weights.js';
import { adapterPlaces } from '../../model/formats/adapter-layout.js';
import { decoderPlaces } from '../../model/formats/decoder-layout.js';
import type { TensorPiece } from '../../model/formats/tensor.js';
import type { TensorPlace } from '../../model/formats/tensor-place.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats, WeightMemory } from '../../tensor/memory.js';
import type { OptimizerHeader } from '../stored-state.js';
import { Destinations } from './destinations.js';

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
    const destinations = new Destinations(this.#kernels, places, matricesOf(weights));
    this.#states.set(owner.id, { weights, destinations });
  }

  take(owner: StateOwner, piece: TensorPiece): void {
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

/** The places of a decoder's tensors, or of its adapter's tensors if it has one. They have the names in files. */
function weightPlaces({ decoder, adapter }: ModelWeights): TensorPlace<WeightMemory>[] {
  const { config } = decoder;
  const tensors: DecoderTensors = decoder.tensors;
  return adapter === undefined
    ? decoderPlaces(tensors, config)
    : adapterPlaces(adapter.tensors, config, adapter.settings);
}

/** The memories that places of those tensors lie in. */
const matricesOf = ({ decoder, adapter }: ModelWeights): readonly WeightMemory[] =>
  adapter === undefined
    ? tensorsInOrder<WeightMemory, Floats>(decoder.tensors)
    : adapter.tensors.layers.flatMap((layer) => Object.values(layer).flatMap(({ A, B }) => [A, B]));

function optimizerPlaces(
  optimizer: FlatOptimizer,
  { type, step, buffers }: IncomingOptimizer,
): TensorPlace<WeightMemory>[] {
  return [...optimizer.restoreInto(type, step, buffers)].map(([name, data]) => ({ name, shape: [data.length], data }));
}
