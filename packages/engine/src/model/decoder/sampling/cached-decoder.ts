/**
 * The computation of a sampler: rows of any slots pass through the decoder together, with keys and values in the cache,
 * and the next tokens are drawn from the logits.
 */

import type { DecoderConfig, Precision } from '../../../contract/architecture.js';
import { type Sampling, scaleOfDraws } from '../../../contract/sampling.js';
import { type RandomKey, uniformAt } from '../../../math.js';
import { Arena, type Columns } from '../../../tensor/arena.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats, Integers } from '../../../tensor/memory.js';
import { type Products, productsIn } from '../../../tensor/products.js';
import { layerBuffers } from '../layer/layer-buffers.js';
import { forwardLayer } from '../layer/layer-forward.js';
import type { AdaptedRows } from '../layer/matrix-products.js';
import { forEachLogitBlock, logitBlockRows } from '../output-head.js';
import { convolves, type LayerTensors, layerHeads } from '../weights/decoder-tensors.js';
import type { AdapterWeights, BaseWeights } from '../weights/model-weights.js';
import { embedRows } from '../weights/packed-decoder.js';
import { ropeTables } from '../weights/rotary-table.js';
import { KeyValueCache } from './key-value-cache.js';

export interface CachedPolicy {
  readonly name: string;
  /** The position in the order of the policies' first `load`, which is the order of rows in a batch. */
  readonly index: number;
  readonly adapter: AdapterWeights | undefined;
  version: number;
}

export interface CachedRow {
  readonly policy: CachedPolicy;
  readonly token: number;
  readonly slot: number;
  readonly position: number;
  /** How many first tokens its slot has in common with the slot of the row before it, or fewer. */
  readonly alike: number;
}

/** A request whose next token is drawn: draw number `tokens.length` of the stream named by its key. */
export interface DrawingRequest {
  readonly request: Pick<Sampling, 'temperature' | 'topP' | 'topK'> & { readonly key: RandomKey };
  readonly tokens: readonly number[];
}

/** The drawn tokens and their log-probs, one a row. */
export type DrawnTokens = [tokens: Int32Array, logprobs: Float32Array];

/** The most rows of a prefill batch, and at least as many as are decoded together. */
const PREFILL_ROWS = 1024;

/** The columns of a row's place: token, slot, position, and what its slot has in common with the one before. */
const PLACES = 4;

export class CachedDecoder {
  readonly config: DecoderConfig;
  readonly cache: KeyValueCache;
  /** The decoder's weights; the policies' adapters are on these. */
  weights: BaseWeights;
  readonly #kernels: Kernels;
  readonly #precision: Precision;
  readonly #products: Products;
  readonly #arena: Arena;
  readonly #ropes: readonly (Floats | undefined)[]; // [layers]

  constructor(kernels: Kernels, weights: BaseWeights, precision: Precision, arena = new Arena(kernels)) {
    const { config } = weights;
    this.config = config;
    this.weights = weights;
    this.#kernels = kernels;
    this.#precision = precision;
    this.#products = productsIn(precision, kernels);
    this.#arena = arena;
    this.#ropes = ropeTables(kernels, config);
    this.cache = new KeyValueCache(kernels, config);
  }

  /** Fills the cache with the keys and values of the rows, which are sorted by policy. */
  prefill(rows: readonly CachedRow[]): void {
    for (let first = 0; first < rows.length; first += PREFILL_ROWS) {
      const some = rows.slice(first, first + PREFILL_ROWS);
      this.#arena.reset();
      const columns = this.#arena.takeColumns(some.length, { integers: PLACES, floats: 0 }, ({ integers }, stride) =>
        writePlaces(integers, stride, some),
      );
      this.#forward(some, columns, 'prefill');
    }
  }

  /**
   * Runs the rows, which are sorted by policy, and draws the tokens that follow.
   * @param rowOf The row from which each request draws, in ascending order; default: request n draws from row n
   * @returns One token for each request
   */
  decode(rows: readonly CachedRow[], requests: readonly DrawingRequest[], rowOf?: Int32Array): Promise<DrawnTokens> {
    const kernels = this.#kernels;
    const arena = this.#arena;
    const { width, vocabSize, normEpsilon } = this.config;
    const count = rows.length;
    arena.reset();
    const columns = arena.takeColumns(
      requests.length,
      { integers: PLACES + 1, floats: 3 },
      ({ integers, floats }, stride) => {
        writePlaces(integers, stride, rows);
        requests.forEach(({ request, tokens }, i) => {
          integers[PLACES * stride + i] = request.topK;
          floats[(PLACES + 1) * stride + i] = uniformAt(request.key, tokens.length);
          floats[(PLACES + 2) * stride + i] = scaleOfDraws(request.temperature);
          floats[(PLACES + 3) * stride + i] = request.topP;
        });
      },
    );
    const topK = columns.integers[PLACES] as Integers;
    const [uniforms, inverse, topP] = columns.floats as readonly [Floats, Floats, Floats];
    const stream = this.#forward(rows, columns, 'decode');
    const normed = arena.take(count * width);
    const { head: weights, gains } = this.weights.packed('forward', this.#precision);
    kernels.rmsNorm({
      out: normed,
      inverse: arena.take(count),
      x: stream,
      gain: gains.final,
      rows: count,
      width,
      epsilon: normEpsilon,
    });
    const [tokens, logprobs] = [arena.takeIntegers(requests.length), arena.take(requests.length)];
    const head = { kernels, products: this.#products, arena, config: this.config, weights };
    /** Draws for the requests from `first` on, each from its row of the logits. */
    const draw = (logits: Floats, first: number, n: number) => {
      const block = <T extends Floats | Integers>(values: T) =>
        (n === requests.length ? values : values.subarray(first, first + n)) as T;
      kernels.sampleTokens({
        tokens: block(tokens),
        logprobs: block(logprobs),
        logits,
        uniforms: block(uniforms),
        inverseTemperature: block(inverse),
        topK: block(topK),
        topP: block(topP),
        rows: n,
        vocabSize,
      });
    };
    let drawn = 0;
    let copied: Floats | undefined; // logits of rows that several requests draw from
    forEachLogitBlock(head, normed, count, ({ first, rows: n, logits }) => {
      const end = rowOf === undefined ? first + n : rowOf.findLastIndex((row) => row < first + n) + 1;
      if (rowOf === undefined || end - drawn === n) {
        draw(logits, drawn, n);
        drawn = end;
        return;
      }
      const most = logitBlockRows(vocabSize);
      while (drawn < end) {
        const some = rowOf.subarray(drawn, Math.min(end, drawn + most)).map((row) => row - first);
        const [tokens] = arena.takeWritten([some]);
        copied ??= arena.take(Math.min(requests.length, most) * vocabSize);
        kernels.embed({ out: copied, table: logits, tokens, rows: some.length, width: vocabSize });
        draw(copied, drawn, some.length);
        drawn += some.length;
      }
    });
    return kernels.read([tokens, logprobs]);
  }

  /**
   * Runs the stack over rows of any slots and returns the residual stream [rows, width]. A prefill needs keys and
   * values only, so the part behind the last layer's is not computed.
   */
  #forward(rows: readonly CachedRow[], { integers }: Columns, purpose: 'prefill' | 'decode'): Floats {
    const kernels = this.#kernels;
    const { config, cache } = this;
    const { layers, width } = config;
    const { capacity } = cache;
    const count = rows.length;
    const [tokens, slots, positions, alike] = integers.map((column) =>
      column.length === count ? column : column.subarray(0, count),
    ) as unknown as readonly [Integers, Integers, Integers, Integers];
    const { tensors } = this.weights;
    const packed = this.weights.packed('forward', this.#precision);
    const stream = embedRows({ kernels, arena: this.#arena, config, packed, tokens, rows: count });
    const adapters = adaptedRows(rows, this.#precision);
    const stack = { kernels, products: this.#products, config, ropes: this.#ropes, tensors, packed, adapters };
    const shape = { config, rows: { rows: count, kept: undefined }, adapters, inPlace: true };
    const buffers = layerBuffers(this.#arena, stream, shape);
    const attend = (layer: number, { attended, qkv }: typeof buffers) => {
      const places = { out: attended, slots, positions, rows: count, capacity };
      if (convolves(config, layer)) {
        const weight = (tensors.layers[layer] as LayerTensors).convolution;
        const taps = config.convolution?.taps ?? 0;
        kernels.convolutionCached({ ...places, products: cache.products(layer), bcx: qkv, weight, width, taps });
        return;
      }
      const [keys, values] = [cache.keys(layer), cache.values(layer)];
      const table = this.#ropes[layer];
      const attention = { ...places, keys, values, qkv, alike, heads: layerHeads(config, layer) };
      if (kernels.fused !== undefined && table !== undefined) {
        kernels.fused.ropeAttentionCached({ ...attention, table });
        return;
      }
      if (table !== undefined) kernels.rope({ qkv, table, positions, rows: count, heads: config, inverse: false });
      kernels.attentionCached(attention);
    };
    const none = this.#arena.takeIntegers(0);
    for (let layer = 0; layer < layers; layer++) {
      const kept = purpose === 'prefill' && layer === layers - 1 ? none : undefined;
      forwardLayer(stack, { layer, rows: { rows: count, positions, kept }, buffers, output: stream, attend });
    }
    return stream;
  }
}

function writePlaces(columns: Int32Array, stride: number, rows: readonly CachedRow[]): void {
  rows.forEach(({ token, slot, position, alike }, i) => {
    columns[i] = token;
    columns[stride + i] = slot;
    columns[2 * stride + i] = position;
    columns[3 * stride + i] = alike;
  });
}

/** The adapters of rows that come policy by policy; none if no policy has one. */
function adaptedRows(rows: readonly CachedRow[], precision: Precision): AdaptedRows[] {
  if (rows.every(({ policy }) => policy.adapter === undefined)) return [];
  return rows.flatMap(({ policy }, row) =>
    rows[row + 1]?.policy === policy ? [] : { adapter: policy.adapter?.packed('forward', precision), end: row + 1 },
  );
}
