/** States on their way from files into the engine's buffers, piece by piece, so that nothing else holds them. */
import { BackendError } from '../../../core/errors.js';
import type { FlatOptimizer } from '../../../model/decoder/flat-optimizer.js';
import { type DecoderTensors, tensorsInOrder } from '../../../model/decoder/weights/decoder-tensors.js';
import type { ModelWeights } from '../../../model/decoder/weights/model-weights.js';
import { adapterPlaces } from '../../../model/formats/adapter-layout.js';
import { decoderPlaces } from '../../../model/formats/decoder-layout.js';
import type { TensorPiece } from '../../../model/formats/tensor.js';
import type { Place } from '../../../model/formats/tensor-place.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats, WeightMemory } from '../../../tensor/memory.js';
import type { OptimizerHeader } from '../stored-state.js';
import { Destinations } from './destinations.js';

/** The model that a state belongs to. No two models of an engine have the same number, of whatever kind they are. */
export interface StateOwner {
  readonly kind: 'base' | 'policy' | 'critic';
  readonly id: number;
}

/** An optimiser's state whose buffers, of these names, will come in pieces. */
export interface ArrivingOptimizer extends OptimizerHeader {
  readonly buffers: readonly string[];
}

interface Arrival {
  readonly destinations: Destinations;
  readonly weights: ModelWeights;
}

export class Arrivals {
  readonly #kernels: Kernels;
  readonly #arriving = new Map<number, Arrival>();

  constructor(kernels: Kernels) {
    this.#kernels = kernels;
  }

  /** Begins the arrival of weights and of what an optimiser remembers; an optimiser without a state begins anew. */
  begin(
    owner: StateOwner,
    weights: ModelWeights,
    remembered: { readonly optimizer: FlatOptimizer; readonly state: ArrivingOptimizer | undefined } | undefined,
  ): void {
    const places: Place<WeightMemory>[] = weightPlaces(weights);
    if (remembered?.state === undefined) remembered?.optimizer.reset();
    else places.push(...optimizerPlaces(remembered.optimizer, remembered.state));
    const destinations = new Destinations(this.#kernels, places, matricesOf(weights));
    this.#arriving.set(owner.id, { weights, destinations });
  }

  take(owner: StateOwner, piece: TensorPiece): void {
    const put = this.#arriving.get(owner.id)?.destinations.put(piece) ?? false;
    if (!put) throw new BackendError(`tensor "${piece.name}" has no place in a ${owner.kind}`);
  }

  /** To be called whether or not all pieces came. */
  end(owner: StateOwner): void {
    const weights = this.#arriving.get(owner.id)?.weights;
    (weights?.trained ?? weights?.decoder)?.changed();
    this.#arriving.delete(owner.id);
  }
}

/** The places of a decoder's tensors, or of those of the adapter on it, by their names in files. */
function weightPlaces({ decoder, adapter }: ModelWeights): Place<WeightMemory>[] {
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

function optimizerPlaces(optimizer: FlatOptimizer, { type, step, buffers }: ArrivingOptimizer): Place<WeightMemory>[] {
  return [...optimizer.restoreInto(type, step, buffers)].map(([name, data]) => ({ name, shape: [data.length], data }));
}
