/** A state on its way from files to the worker. */

import type { DecoderConfig } from '../contract/architecture.js';
import type { IncomingOptimizer } from '../embedded/thread/incoming-states.js';
import type { PolicyShape } from '../embedded/thread/resident-policy.js';
import { BackendError } from '../errors.js';
import { adapterParameterCount, adapterTensors } from '../model/decoder/weights/adapter-tensors.js';
import { decoderTensors, parameterCount } from '../model/decoder/weights/decoder-tensors.js';
import { adapterPlaces, agentTensor } from '../model/formats/adapter-layout.js';
import { decoderPlaces } from '../model/formats/decoder-layout.js';
import type { BlockPiece, FilePiece, TensorPiece } from '../model/formats/tensor.js';
import { putPiece, type TensorPlace } from '../model/formats/tensor-place.js';
import type { Floats } from '../tensor/memory.js';
import type { Arrays } from './frames.js';

/** A tensor of a file and its place in the flat buffer, as files.py reads it. */
interface FilePart extends Omit<FilePiece, 'name'> {
  readonly at: number;
  readonly stride: number | null;
}

/** A range of the flat buffer that stands for its memory, so that a large model needs none here. */
class Range {
  readonly offset: number;
  readonly length: number;

  constructor(offset: number, length: number) {
    this.offset = offset;
    this.length = length;
  }

  subarray(start: number, end = this.length): Range {
    return new Range(this.offset + start, end - start);
  }
}

export class IncomingState {
  readonly #places: ReadonlyMap<string, TensorPlace<Floats>>;
  readonly #optimizer: IncomingOptimizer | undefined;
  readonly #length: number;
  readonly #parts: FilePart[] = [];
  /** Allocated when the first piece comes: a base's tensors may all be in files. */
  #flat: Float32Array | undefined;
  readonly #moments: Readonly<Record<string, Float32Array>>;

  /** @param shape Undefined for a base: a whole decoder that does not train */
  constructor(config: DecoderConfig, shape: PolicyShape | undefined, optimizer: IncomingOptimizer | undefined) {
    this.#optimizer = optimizer;
    this.#length = shape === undefined ? parameterCount(config) : trainedCount(shape, config);
    this.#places = new Map(placesIn(config, shape, this.#length).map((place) => [place.name, place]));
    this.#moments = Object.fromEntries(
      (optimizer?.buffers ?? []).map((name) => [name, new Float32Array(this.#length)] as const),
    );
  }

  /** Returns false if no tensor has the piece's name. @throws BackendError when bytes and files are mixed */
  put(piece: TensorPiece | BlockPiece | FilePiece): boolean {
    if ('format' in piece) return false;
    const { name } = piece;
    const moment = this.#moments[name];
    if (moment !== undefined && 'bytes' in piece) {
      putPiece({ name, shape: [moment.length], data: moment }, piece);
      return true;
    }
    const place = this.#places.get(name);
    if (place === undefined) return false;
    const { offset: at, length } = place.data as unknown as Range;
    if (!('bytes' in piece)) {
      if (this.#flat !== undefined) throw mixed(name);
      const { path, offset, dtype, shape } = piece;
      this.#parts.push({ path, offset, dtype, shape, at, stride: place.stride ?? null });
      return true;
    }
    if (this.#parts.length > 0) throw mixed(name);
    this.#flat ??= new Float32Array(this.#length);
    putPiece({ ...place, data: this.#flat.subarray(at, at + length) }, piece);
    return true;
  }

  /** The arguments of the call that gives the state to the worker. */
  result() {
    if (this.#parts.length > 0) return { arrays: {} as Arrays, files: this.#parts };
    const flat = this.#flat ?? new Float32Array(this.#length);
    const { type, step, version } = this.#optimizer ?? {};
    return {
      arrays: { weights: flat, ...this.#moments } as Arrays,
      optimizer: type === undefined ? undefined : { type, step, buffers: Object.keys(this.#moments) },
      version,
    };
  }
}

const mixed = (name: string) =>
  new BackendError(`tensor "${name}": some of the weights come as bytes, and others are in files`);

export function trainedCount(shape: PolicyShape, config: DecoderConfig): number {
  if ('trunk' in shape)
    return parameterCount(config) + shape.agents.length * adapterParameterCount(config, shape.adapter);
  if ('base' in shape) return shape.adapter === undefined ? 0 : adapterParameterCount(config, shape.adapter);
  return parameterCount(config);
}

function placesIn(config: DecoderConfig, shape: PolicyShape | undefined, length: number): TensorPlace<Floats>[] {
  const flat = new Range(0, length) as unknown as Floats;
  const whole = (range: Floats) => decoderPlaces(decoderTensors(config, range), config);
  if (shape === undefined || !('base' in shape || 'trunk' in shape)) return whole(flat);
  if ('base' in shape) {
    if (shape.adapter === undefined) return [];
    return adapterPlaces(adapterTensors(config, shape.adapter, flat), config, shape.adapter);
  }
  const { agents, adapter } = shape;
  let at = parameterCount(config);
  const each = adapterParameterCount(config, adapter);
  const ofAgents = agents.flatMap((agent) => {
    const tensors = adapterTensors(config, adapter, flat.subarray(at, at + each));
    at += each;
    return adapterPlaces(tensors, config, adapter).map((place) => ({ ...place, name: agentTensor(agent, place.name) }));
  });
  return [...whole(flat.subarray(0, parameterCount(config))), ...ofAgents];
}
