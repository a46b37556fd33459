/** States on their way from files into the engine's buffers, piece by piece, so that nothing else holds them. */
import { BackendError } from '../../../core/errors.js';
import type { FlatOptimizer } from '../../../model/decoder/flat-optimizer.js';
import type { ModelWeights } from '../../../model/decoder/weights/model-weights.js';
import { adapterPlaces } from '../../../model/formats/adapter-layout.js';
import { decoderPlaces } from '../../../model/formats/decoder-layout.js';
import type { TensorPiece } from '../../../model/formats/tensor.js';
import { type Place, putPiece } from '../../../model/formats/tensor-place.js';
import type { OptimizerHeader } from '../stored-state.js';

/** Whose state it is. */
export interface Owner {
  readonly kind: 'base' | 'policy' | 'critic';
  readonly name: string;
}

/** An optimiser's state whose buffers, of these names, will come in pieces. */
export interface ArrivingOptimizer extends OptimizerHeader {
  readonly buffers: readonly string[];
}

interface Arrival {
  readonly places: ReadonlyMap<string, Place>;
  readonly weights: ModelWeights;
}

const keyOf = ({ kind, name }: Owner) => `${kind} '${name}'`;

export class Arrivals {
  readonly #under = new Map<string, Arrival>();

  /** Without a state for it, an optimiser begins anew. */
  begin(
    owner: Owner,
    weights: ModelWeights,
    optimizer: { readonly own: FlatOptimizer; readonly state: ArrivingOptimizer | undefined } | undefined,
  ): void {
    const places = weightPlaces(weights);
    if (optimizer?.state === undefined) optimizer?.own.reset();
    else places.push(...optimizerPlaces(optimizer.own, optimizer.state));
    this.#under.set(keyOf(owner), { weights, places: new Map(places.map((place) => [place.name, place])) });
  }

  take(owner: Owner, piece: TensorPiece): void {
    const place = this.#under.get(keyOf(owner))?.places.get(piece.name);
    if (place === undefined) throw new BackendError(`tensor "${piece.name}" has no place in ${keyOf(owner)}`);
    putPiece(place, piece);
  }

  /** To be called whether or not all pieces came. */
  end(owner: Owner): void {
    const weights = this.#under.get(keyOf(owner))?.weights;
    (weights?.trained ?? weights?.decoder)?.changed();
    this.#under.delete(keyOf(owner));
  }
}

/** By the names in files: of a decoder, or of the adapter on it. */
function weightPlaces({ decoder, adapter }: ModelWeights): Place[] {
  const { config } = decoder;
  return adapter === undefined
    ? decoderPlaces(decoder.tensors, config)
    : adapterPlaces(adapter.tensors, config, adapter.settings);
}

function optimizerPlaces(optimizer: FlatOptimizer, { type, step, buffers }: ArrivingOptimizer): Place[] {
  return [...optimizer.restoreInto(type, step, buffers)].map(([name, data]) => ({ name, shape: [data.length], data }));
}
