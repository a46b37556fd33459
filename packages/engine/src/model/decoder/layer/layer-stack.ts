/** The decoder's trunk: embedding, layers and final norm, forward over a batch and backward again. */
import type { DecoderConfig, Precision } from '../../../contract/architecture.js';
import type { Arena } from '../../../tensor/arena.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats, Integers } from '../../../tensor/memory.js';
import { type Products, productsIn } from '../../../tensor/products.js';
import type { PackedBatch } from '../packed-batch.js';
import type { Gradient, ModelWeights } from '../weights/model-weights.js';
import { embedRows, scaledRows } from '../weights/packed-decoder.js';
import { ropeTables } from '../weights/rotary-table.js';
import { type BatchAttention, batchAttention } from './batch-attention.js';
import { backwardLayer } from './layer-backward.js';
import { backwardBuffers, type LayerBuffers, type LayerRows, layerBuffers } from './layer-buffers.js';
import { forwardLayer, type LayerForward } from './layer-forward.js';
import type { Stack } from './matrix-products.js';

/**
 * The treatment of the values inside the layers: kept for the backward pass, computed again there from each layer's
 * input, or dropped since no backward pass follows.
 */
export type Keep = 'all' | 'inputs' | 'nothing';

/** A forward pass of N rows: the rows in `predicting`, or all rows of the batch if that is undefined. */
export interface TrunkPass {
  readonly batch: PackedBatch;
  readonly layers: readonly LayerBuffers[];
  readonly final: Floats; // [N, width], the residual stream after the last layer
  readonly normed: Floats; // [N, width]
  readonly inverse: Floats; // [N]
}

export class LayerStack {
  readonly #kernels: Kernels;
  readonly #arena: Arena;
  readonly #config: DecoderConfig;
  readonly #weights: ModelWeights;
  readonly #ropes: readonly (Floats | undefined)[];
  readonly #precision: Precision;
  readonly #products: Products;

  constructor(kernels: Kernels, arena: Arena, weights: ModelWeights, precision: Precision) {
    this.#kernels = kernels;
    this.#arena = arena;
    this.#config = weights.decoder.config;
    this.#weights = weights;
    this.#ropes = ropeTables(kernels, this.#config);
    this.#precision = precision;
    this.#products = productsIn(precision, kernels);
  }

  /** Runs a batch up to the final norm. After the last layer's attention only the rows in `predicting` are computed. */
  forward(batch: PackedBatch, predicting: Integers | undefined, keep: Keep): TrunkPass {
    const arena = this.#arena;
    const { width, normEpsilon } = this.#config;
    const { layers, final } = this.#layersForward(batch, predicting, keep);
    const count = predicting?.length ?? batch.rows;
    const [normed, inverse] = [arena.take(count * width), arena.take(count)];
    const { gains } = this.#weights.decoder.packed('forward', this.#precision);
    this.#kernels.rmsNorm({
      out: normed,
      inverse,
      x: final,
      gain: gains.final,
      rows: count,
      width,
      epsilon: normEpsilon,
    });
    return { batch, layers, final, normed, inverse };
  }

  #layersForward(
    batch: PackedBatch,
    predicting: Integers | undefined,
    keep: Keep,
  ): Pick<TrunkPass, 'layers' | 'final'> {
    const arena = this.#arena;
    const config = this.#config;
    const { rows } = batch;
    const stack = this.#stack('forward');
    const inPlace = keep === 'nothing';
    const saved: LayerBuffers[] = [];
    const { packed } = stack;
    let stream = embedRows({ kernels: this.#kernels, arena, config, packed, tokens: batch.tokens, rows });
    const attend = this.#attend(batch, batchAttention(this.#kernels, arena, config, stack.tensors, batch));
    let shared: LayerBuffers | undefined; // the buffers of all layers whose inner values are not kept
    for (let layer = 0; layer < config.layers; layer++) {
      const layerRows = this.#layerRows(batch, layer, predicting);
      const shape = { config, rows: layerRows, adapters: stack.adapters, inPlace };
      let buffers: LayerBuffers;
      if (keep === 'all' || layerRows.kept !== undefined) {
        buffers = layerBuffers(arena, stream, shape);
      } else {
        shared ??= layerBuffers(arena, stream, shape);
        buffers = { ...shared, input: stream, keptInput: stream };
      }
      saved.push(buffers);
      if (!inPlace || layerRows.kept !== undefined)
        stream = arena.take((layerRows.kept?.length ?? rows) * config.width);
      forwardLayer(stack, { layer, rows: layerRows, buffers, output: stream, attend });
    }
    return { layers: saved, final: stream };
  }

  /**
   * The backward pass of `forward` with `batch.predicting`: from the gradient of `normed`, `dNormed` [N, width], down
   * to the embedding. Adds to `gradient`.
   * @param recompute Whether the forward pass kept only the layers' inputs
   */
  backward(pass: TrunkPass, gradient: Gradient, dNormed: Floats, recompute: boolean): void {
    const kernels = this.#kernels;
    const arena = this.#arena;
    const { width, layers } = this.#config;
    const { batch } = pass;
    const count = batch.predicting.length;
    const stack = this.#stack('backward');
    // A row of a tree may predict several tokens, so there may be more of these than rows.
    const buffers = backwardBuffers(kernels, arena, this.#config, Math.max(batch.rows, count), stack.adapters);
    const zeros = (rows: number) => {
      const memory = arena.take(rows * width);
      kernels.fill({ x: memory, value: 0 });
      return memory;
    };
    let dStream = zeros(count);
    kernels.rmsNormBackward({
      dx: dStream,
      dGain: gradient.decoder?.finalNorm ?? buffers.dGain,
      dOut: dNormed,
      x: pass.final,
      gain: stack.packed.gains.final,
      inverse: pass.inverse,
      rows: count,
      width,
    });
    const unread = recompute && this.#config.resultNorms ? arena.take(batch.rows * width) : undefined;
    const attention = batchAttention(kernels, arena, this.#config, stack.tensors, batch);
    const attend = this.#attend(batch, attention);
    for (let layer = layers - 1; layer >= 0; layer--) {
      const rows = this.#layerRows(batch, layer, batch.predicting);
      const dInput = rows.kept === undefined ? dStream : zeros(batch.rows);
      const saved = pass.layers[layer] as LayerBuffers;
      // The last layer shares no buffers, so its values are still there.
      if (recompute && rows.kept === undefined) {
        forwardLayer(this.#stack('forward'), { layer, rows, buffers: saved, output: unread, attend });
      }
      backwardLayer(stack, gradient, { layer, rows, attention, saved, dOutput: dStream, dInput }, buffers);
      dStream = dInput;
    }
    if (gradient.decoder !== undefined)
      kernels.embedBackward({
        dTable: gradient.decoder.embedding,
        dOut: scaledRows({ kernels, arena, config: this.#config, rows: batch.rows }, dStream),
        tokens: batch.tokens,
        rows: batch.rows,
        width,
      });
  }

  #stack(direction: 'forward' | 'backward'): Stack {
    const { decoder, adapter } = this.#weights;
    return {
      kernels: this.#kernels,
      products: this.#products,
      config: this.#config,
      ropes: this.#ropes,
      tensors: decoder.tensors,
      packed: decoder.packed(direction, this.#precision),
      adapters:
        adapter === undefined
          ? []
          : [{ adapter: adapter.packed(direction, this.#precision), end: Number.POSITIVE_INFINITY }],
    };
  }

  /** The rows of a layer: after the attention of the last one only those in `predicting` are kept. */
  #layerRows({ rows, positions }: PackedBatch, layer: number, predicting: Integers | undefined): LayerRows {
    return { rows, positions, kept: layer === this.#config.layers - 1 ? predicting : undefined };
  }

  #attend({ rows, positions }: PackedBatch, attention: BatchAttention): LayerForward['attend'] {
    return (layer, buffers) => {
      const { qkv } = buffers;
      const table = this.#ropes[layer];
      if (table !== undefined) this.#kernels.rope({ qkv, table, positions, rows, heads: this.#config, inverse: false });
      attention.forward(layer, buffers);
    };
  }
}
