/**
 * The decoder's stack: for each layer
 *   middle = input + attention(rope(norm(input) Wqkv)) Wo
 *   output = middle + swiglu(norm(middle) Wgu) Wdown
 * where Wqkv and Wo may add a bias, and queries and keys may be normalised head by head before the rotation.
 * One forward pass serves training, prefill and decoding, which differ only in where attention finds keys and values; so
 * their numbers cannot differ. Rows R are the tokens of all sequences of a batch, one after another. What follows attention
 * is computed for the rows K that somebody looks at: all of them, but in the last layer only those that predict a token.
 */
import type { DecoderConfig } from '../../core/backend.js';
import type { Arena } from '../../tensor/arena.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { PackedDecoder } from './packed.js';
import { type DecoderTensors, qkvWidth } from './parameters.js';

/** What one layer computes and the backward pass needs again. */
export interface LayerBuffers {
  readonly input: Float32Array; // [R, width]
  readonly normed: Float32Array; // [R, width]
  readonly inverse: Float32Array; // [R]
  readonly qkv: Float32Array; // [R, (heads + 2 kvHeads) headDim]
  readonly attended: Float32Array; // [R, heads · headDim]
  readonly logSumExp: Float32Array; // [R, heads]
  /** The kept rows of `input` and `attended`; those themselves where all are kept. */
  readonly keptInput: Float32Array; // [K, width]
  readonly keptAttended: Float32Array; // [K, heads · headDim]
  readonly middle: Float32Array; // [K, width]
  readonly middleNormed: Float32Array; // [K, width]
  readonly middleInverse: Float32Array; // [K]
  readonly gateUp: Float32Array; // [K, 2 · feedForward]
  readonly activated: Float32Array; // [K, feedForward]
  // Of models that normalise queries and keys:
  readonly projected: Float32Array; // [R, (heads + 2 kvHeads) headDim], qkv before that
  readonly queryInverse: Float32Array; // [R, heads]
  readonly keyInverse: Float32Array; // [R, kvHeads]
}

/** The rows of a layer: R that attend, and the K of them that go on; all where `kept` is undefined. */
export interface LayerRows {
  readonly rows: number;
  readonly positions: Int32Array; // [R]
  readonly kept: Int32Array | undefined; // [K]
}

const keptCount = ({ rows, kept }: Pick<LayerRows, 'rows' | 'kept'>) => kept?.length ?? rows;

/** Buffers for a layer. `inPlace` lets the residual stream use one buffer throughout, for passes without a backward. */
export function layerBuffers(
  arena: Arena,
  config: DecoderConfig,
  { rows, kept }: Pick<LayerRows, 'rows' | 'kept'>,
  input: Float32Array,
  inPlace: boolean,
): LayerBuffers {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const headRows = config.queryKeyNorm ? rows : 0;
  const count = keptCount({ rows, kept });
  const attended = arena.take(rows * heads * headDim);
  const keptInput = kept === undefined ? input : arena.take(count * width);
  return {
    input,
    normed: arena.take(rows * width),
    inverse: arena.take(rows),
    qkv: arena.take(rows * qkvWidth(config)),
    attended,
    logSumExp: arena.take(rows * heads),
    keptInput,
    keptAttended: kept === undefined ? attended : arena.take(count * heads * headDim),
    middle: inPlace ? keptInput : arena.take(count * width),
    middleNormed: arena.take(count * width),
    middleInverse: arena.take(count),
    gateUp: arena.take(count * 2 * feedForward),
    activated: arena.take(count * feedForward),
    projected: arena.take(inPlace ? 0 : headRows * qkvWidth(config)),
    queryInverse: arena.take(headRows * heads),
    keyInverse: arena.take(headRows * kvHeads),
  };
}

export interface Stack {
  readonly kernels: Kernels;
  readonly config: DecoderConfig;
  readonly rope: Float32Array;
  readonly tensors: DecoderTensors;
  readonly packed: PackedDecoder;
}

/** Runs one layer; `attend` fills `buffers.attended` from `buffers.qkv`; `output` [K, width] may be `buffers.middle`. */
export function forwardLayer(
  { kernels, config, rope, tensors, packed }: Stack,
  layer: number,
  { rows, positions, kept }: LayerRows,
  buffers: LayerBuffers,
  output: Float32Array,
  attend: (layer: number, buffers: LayerBuffers) => void,
): void {
  const { width, heads, kvHeads, headDim, feedForward, normEpsilon } = config;
  const weights = tensors.layers[layer] as DecoderTensors['layers'][number];
  const matrices = packed.layers[layer] as PackedDecoder['layers'][number];
  const { input, normed, inverse, qkv, attended, keptInput, keptAttended } = buffers;
  const { middle, middleNormed, middleInverse, gateUp, activated } = buffers;
  const stride = qkvWidth(config);
  const biased = config.attentionBias !== undefined;

  kernels.rmsNorm(normed, inverse, input, weights.attentionNorm, rows, width, normEpsilon);
  if (biased) fillRows(qkv, weights.qkvBias, rows);
  kernels.linear(qkv, normed, matrices.qkv, rows, width, stride, biased);
  if (config.queryKeyNorm) {
    const { projected, queryInverse, keyInverse } = buffers;
    if (projected.length > 0) projected.set(qkv);
    const keys = qkv.subarray(heads * headDim);
    kernels.headNorm(qkv, queryInverse, weights.queryNorm, rows, stride, heads, headDim, normEpsilon);
    kernels.headNorm(keys, keyInverse, weights.keyNorm, rows, stride, kvHeads, headDim, normEpsilon);
  }
  kernels.rope(qkv, rope, positions, rows, stride, heads + kvHeads, headDim, false);
  attend(layer, buffers);

  const count = keptCount({ rows, kept });
  if (kept !== undefined) {
    kernels.embed(keptInput, input, kept, count, width); // a gather of rows
    kernels.embed(keptAttended, attended, kept, count, heads * headDim);
  }
  if (middle !== keptInput) middle.set(keptInput);
  if (config.attentionBias === 'qkvo') {
    const change = middleNormed; // not needed yet
    fillRows(change, weights.attentionOutBias, count);
    kernels.linear(change, keptAttended, matrices.attentionOut, count, heads * headDim, width, true);
    kernels.add(middle, change, count * width);
  } else {
    kernels.linear(middle, keptAttended, matrices.attentionOut, count, heads * headDim, width, true);
  }

  kernels.rmsNorm(middleNormed, middleInverse, middle, weights.feedForwardNorm, count, width, normEpsilon);
  kernels.linear(gateUp, middleNormed, matrices.gateUp, count, width, 2 * feedForward, false);
  kernels.swiglu(activated, gateUp, count, feedForward);
  if (output !== middle) output.set(middle);
  kernels.linear(output, activated, matrices.down, count, feedForward, width, true);
}

/** out [rows, row.length] = the same row again and again: what `linear` adds to where there is a bias. */
function fillRows(out: Float32Array, row: Float32Array, rows: number): void {
  const length = rows * row.length;
  if (length > 0) out.set(row);
  for (let filled = row.length; filled < length; filled *= 2)
    out.copyWithin(filled, 0, Math.min(filled, length - filled));
}

/** Buffers that the backward pass of every layer uses in turn. */
export interface BackwardBuffers {
  readonly dActivated: Float32Array; // [R, feedForward]
  readonly dGateUp: Float32Array; // [R, 2 · feedForward]
  readonly dNormed: Float32Array; // [R, width]
  readonly dAttended: Float32Array; // [R, heads · headDim]
  readonly dKeptAttended: Float32Array; // [R, heads · headDim], of a layer that keeps some of its rows
  readonly dQkv: Float32Array; // [R, (heads + 2 kvHeads) headDim]
  readonly ones: Float32Array; // [R] where there are biases, whose gradient is ones [1, R] times that of their layer
}

export function backwardBuffers(arena: Arena, config: DecoderConfig, rows: number): BackwardBuffers {
  return {
    dActivated: arena.take(rows * config.feedForward),
    dGateUp: arena.take(rows * 2 * config.feedForward),
    dNormed: arena.take(rows * config.width),
    dAttended: arena.take(rows * config.heads * config.headDim),
    dKeptAttended: arena.take(rows * config.heads * config.headDim),
    dQkv: arena.take(rows * qkvWidth(config)),
    ones: arena.take(config.attentionBias === undefined ? 0 : rows).fill(1),
  };
}

/**
 * Takes the gradient of the layer's output, `dOutput` [K, width], and leaves that of its input in `dInput` [R, width]: the
 * same buffer where all rows are kept, a zeroed one otherwise. `gradient` is added to.
 */
export function backwardLayer(
  { kernels, config, rope, tensors, packed }: Stack,
  gradient: DecoderTensors,
  layer: number,
  {
    rows,
    positions,
    kept,
    starts,
    sequences,
  }: LayerRows & {
    readonly starts: Int32Array;
    readonly sequences: number;
  },
  saved: LayerBuffers,
  dOutput: Float32Array,
  dInput: Float32Array,
  { dActivated, dGateUp, dNormed, dAttended, dKeptAttended, dQkv, ones }: BackwardBuffers,
): void {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const weights = tensors.layers[layer] as DecoderTensors['layers'][number];
  const transposed = packed.layers[layer] as PackedDecoder['layers'][number];
  const grads = gradient.layers[layer] as DecoderTensors['layers'][number];
  const stride = qkvWidth(config);
  const count = keptCount({ rows, kept });

  kernels.linear(dActivated, dOutput, transposed.down, count, width, feedForward, false);
  kernels.linearWeightGradient(grads.down, saved.activated, dOutput, count, feedForward, width);
  kernels.swigluBackward(dGateUp, dActivated, saved.gateUp, count, feedForward);
  kernels.linearWeightGradient(grads.gateUp, saved.middleNormed, dGateUp, count, width, 2 * feedForward);
  kernels.linear(dNormed, dGateUp, transposed.gateUp, count, 2 * feedForward, width, false);
  kernels.rmsNormBackward(
    dOutput,
    grads.feedForwardNorm,
    dNormed,
    saved.middle,
    weights.feedForwardNorm,
    saved.middleInverse,
    count,
    width,
  );

  if (config.attentionBias === 'qkvo')
    kernels.linearWeightGradient(grads.attentionOutBias, ones, dOutput, count, 1, width);
  const dContext = kept === undefined ? dAttended : dKeptAttended;
  kernels.linear(dContext, dOutput, transposed.attentionOut, count, width, heads * headDim, false);
  kernels.linearWeightGradient(grads.attentionOut, saved.keptAttended, dOutput, count, heads * headDim, width);
  if (kept !== undefined) {
    kernels.embedBackward(dInput, dOutput, kept, count, width); // a scatter of rows
    dAttended.fill(0);
    kernels.embedBackward(dAttended, dKeptAttended, kept, count, heads * headDim);
  }
  kernels.attentionBackward(
    dQkv,
    dAttended,
    saved.attended,
    saved.logSumExp,
    saved.qkv,
    starts,
    sequences,
    heads,
    kvHeads,
    headDim,
  );
  kernels.rope(dQkv, rope, positions, rows, stride, heads + kvHeads, headDim, true);
  if (config.queryKeyNorm) {
    const { projected, queryInverse, keyInverse } = saved;
    const { queryNorm, keyNorm } = weights;
    const keys = heads * headDim; // where they begin in a row
    const [dKeys, projectedKeys] = [dQkv.subarray(keys), projected.subarray(keys)];
    kernels.headNormBackward(dQkv, grads.queryNorm, projected, queryNorm, queryInverse, rows, stride, heads, headDim);
    kernels.headNormBackward(dKeys, grads.keyNorm, projectedKeys, keyNorm, keyInverse, rows, stride, kvHeads, headDim);
  }
  if (config.attentionBias !== undefined) kernels.linearWeightGradient(grads.qkvBias, ones, dQkv, rows, 1, stride);
  kernels.linearWeightGradient(grads.qkv, saved.normed, dQkv, rows, width, stride);
  kernels.linear(dNormed, dQkv, transposed.qkv, rows, stride, width, false);
  kernels.rmsNormBackward(
    dInput,
    grads.attentionNorm,
    dNormed,
    saved.input,
    weights.attentionNorm,
    saved.inverse,
    rows,
    width,
  );
}
