/**
 * The decoder's stack: for each layer
 *   middle = input + attention(rope(norm(input) Wqkv)) Wo
 *   output = middle + swiglu(norm(middle) Wgu) Wdown
 * where Wqkv and Wo may add a bias, and queries and keys may be normalised head by head before the rotation.
 * One forward pass serves training, prefill and decoding, which differ only in where attention finds keys and values; so
 * their numbers cannot differ. Rows R are the tokens of all sequences of a batch, one after another.
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
  readonly middle: Float32Array; // [R, width]
  readonly middleNormed: Float32Array; // [R, width]
  readonly middleInverse: Float32Array; // [R]
  readonly gateUp: Float32Array; // [R, 2 · feedForward]
  readonly activated: Float32Array; // [R, feedForward]
  // Of models that normalise queries and keys:
  readonly projected: Float32Array; // [R, (heads + 2 kvHeads) headDim], qkv before that
  readonly queryInverse: Float32Array; // [R, heads]
  readonly keyInverse: Float32Array; // [R, kvHeads]
}

/** Buffers for `rows` rows. `inPlace` lets the residual stream use one buffer throughout, for passes without a backward. */
export function layerBuffers(
  arena: Arena,
  config: DecoderConfig,
  rows: number,
  input: Float32Array,
  inPlace: boolean,
): LayerBuffers {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const headRows = config.queryKeyNorm ? rows : 0;
  return {
    input,
    normed: arena.take(rows * width),
    inverse: arena.take(rows),
    qkv: arena.take(rows * qkvWidth(config)),
    attended: arena.take(rows * heads * headDim),
    logSumExp: arena.take(rows * heads),
    middle: inPlace ? input : arena.take(rows * width),
    middleNormed: arena.take(rows * width),
    middleInverse: arena.take(rows),
    gateUp: arena.take(rows * 2 * feedForward),
    activated: arena.take(rows * feedForward),
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

/** Runs one layer; `attend` fills `buffers.attended` from `buffers.qkv`; `output` may be `buffers.middle`. */
export function forwardLayer(
  { kernels, config, rope, tensors, packed }: Stack,
  layer: number,
  rows: number,
  positions: Int32Array,
  buffers: LayerBuffers,
  output: Float32Array,
  attend: (layer: number, buffers: LayerBuffers) => void,
): void {
  const { width, heads, kvHeads, headDim, feedForward, normEpsilon } = config;
  const weights = tensors.layers[layer] as DecoderTensors['layers'][number];
  const matrices = packed.layers[layer] as PackedDecoder['layers'][number];
  const { input, normed, inverse, qkv, attended, middle, middleNormed, middleInverse, gateUp, activated } = buffers;
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
  if (middle !== input) middle.set(input);
  if (config.attentionBias === 'qkvo') {
    const change = middleNormed; // not needed yet
    fillRows(change, weights.attentionOutBias, rows);
    kernels.linear(change, attended, matrices.attentionOut, rows, heads * headDim, width, true);
    kernels.add(middle, change, rows * width);
  } else {
    kernels.linear(middle, attended, matrices.attentionOut, rows, heads * headDim, width, true);
  }

  kernels.rmsNorm(middleNormed, middleInverse, middle, weights.feedForwardNorm, rows, width, normEpsilon);
  kernels.linear(gateUp, middleNormed, matrices.gateUp, rows, width, 2 * feedForward, false);
  kernels.swiglu(activated, gateUp, rows, feedForward);
  if (output !== middle) output.set(middle);
  kernels.linear(output, activated, matrices.down, rows, feedForward, width, true);
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
  readonly dQkv: Float32Array; // [R, (heads + 2 kvHeads) headDim]
  readonly ones: Float32Array; // [R] where there are biases, whose gradient is ones [1, R] times that of their layer
}

export function backwardBuffers(arena: Arena, config: DecoderConfig, rows: number): BackwardBuffers {
  return {
    dActivated: arena.take(rows * config.feedForward),
    dGateUp: arena.take(rows * 2 * config.feedForward),
    dNormed: arena.take(rows * config.width),
    dAttended: arena.take(rows * config.heads * config.headDim),
    dQkv: arena.take(rows * qkvWidth(config)),
    ones: arena.take(config.attentionBias === undefined ? 0 : rows).fill(1),
  };
}

/** `dStream` [R, width]: the gradient of the layer's output becomes that of its input. `gradient` is added to. */
export function backwardLayer(
  { kernels, config, rope, tensors, packed }: Stack,
  gradient: DecoderTensors,
  layer: number,
  batch: {
    readonly rows: number;
    readonly positions: Int32Array;
    readonly starts: Int32Array;
    readonly sequences: number;
  },
  saved: LayerBuffers,
  dStream: Float32Array,
  { dActivated, dGateUp, dNormed, dAttended, dQkv, ones }: BackwardBuffers,
): void {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const { rows, positions, starts, sequences } = batch;
  const weights = tensors.layers[layer] as DecoderTensors['layers'][number];
  const transposed = packed.layers[layer] as PackedDecoder['layers'][number];
  const grads = gradient.layers[layer] as DecoderTensors['layers'][number];
  const stride = qkvWidth(config);

  kernels.linear(dActivated, dStream, transposed.down, rows, width, feedForward, false);
  kernels.linearWeightGradient(grads.down, saved.activated, dStream, rows, feedForward, width);
  kernels.swigluBackward(dGateUp, dActivated, saved.gateUp, rows, feedForward);
  kernels.linearWeightGradient(grads.gateUp, saved.middleNormed, dGateUp, rows, width, 2 * feedForward);
  kernels.linear(dNormed, dGateUp, transposed.gateUp, rows, 2 * feedForward, width, false);
  kernels.rmsNormBackward(
    dStream,
    grads.feedForwardNorm,
    dNormed,
    saved.middle,
    weights.feedForwardNorm,
    saved.middleInverse,
    rows,
    width,
  );

  if (config.attentionBias === 'qkvo')
    kernels.linearWeightGradient(grads.attentionOutBias, ones, dStream, rows, 1, width);
  kernels.linear(dAttended, dStream, transposed.attentionOut, rows, width, heads * headDim, false);
  kernels.linearWeightGradient(grads.attentionOut, saved.attended, dStream, rows, heads * headDim, width);
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
    dStream,
    grads.attentionNorm,
    dNormed,
    saved.input,
    weights.attentionNorm,
    saved.inverse,
    rows,
    width,
  );
}
