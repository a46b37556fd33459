/**
 * The decoder's stack: for each layer
 *   middle = input + attention(rope(norm(input) Wqkv)) Wo
 *   output = middle + swiglu(norm(middle) Wgu) Wdown
 * where Wqkv and Wo may add a bias, queries and keys may be normalised head by head before the rotation, and any of the
 * matrices may be adapted (see adapter.ts).
 * One forward pass serves training, prefill and decoding, which differ only in where attention finds keys and values; so
 * their numbers cannot differ. Rows R are the tokens of all sequences of a batch, one after another. What follows attention
 * is computed for the rows K that somebody looks at: all of them, but in the last layer only those that predict a token.
 */
import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Arena } from '../../../tensor/arena.js';
import { type DecoderTensors, type Matrix, qkvWidth } from '../weights/decoder-tensors.js';
import type { PackedAdapter } from '../weights/packed-adapter.js';
import { type AdaptedRows, type Gradient, multiply, multiplyBackward, narrow, type Stack } from './matrix-products.js';

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
  /** Of adapted matrices: x A, [R or K, n · rank]. */
  readonly narrowed: Readonly<Record<Matrix, Float32Array>>;
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
  adapters: readonly AdaptedRows[],
): LayerBuffers {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const headRows = config.queryKeyNorm ? rows : 0;
  const count = keptCount({ rows, kept });
  const attended = arena.take(rows * heads * headDim);
  const keptInput = kept === undefined ? input : arena.take(count * width);
  const narrow = (matrix: Matrix) => arena.take((matrix === 'qkv' ? rows : count) * mostNarrow(adapters, matrix));
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
    narrowed: {
      qkv: narrow('qkv'),
      attentionOut: narrow('attentionOut'),
      gateUp: narrow('gateUp'),
      down: narrow('down'),
    },
  };
}

/** The largest n · rank of a matrix. */
function mostNarrow(adapters: readonly AdaptedRows[], matrix: Matrix): number {
  const widths = adapters.map(({ adapter }) => adapter?.matrices.find((each) => each.matrix === matrix)?.width ?? 0);
  return Math.max(0, ...widths);
}

/**
 * Runs one layer; `attend` fills `buffers.attended` from `buffers.qkv`; `output` [K, width] may be `buffers.middle`. Where it is
 * undefined only what a backward pass reads is computed.
 */
export function forwardLayer(
  stack: Stack,
  layer: number,
  { rows, positions, kept }: LayerRows,
  buffers: LayerBuffers,
  output: Float32Array | undefined,
  attend: (layer: number, buffers: LayerBuffers) => void,
): void {
  const { kernels, config, rope, tensors } = stack;
  const { width, heads, headDim, feedForward, normEpsilon } = config;
  const weights = tensors.layers[layer] as DecoderTensors['layers'][number];
  const { input, normed, inverse, qkv, attended, keptInput, keptAttended, narrowed } = buffers;
  const { middle, middleNormed, middleInverse, gateUp, activated } = buffers;
  const biased = config.attentionBias !== undefined;

  kernels.rmsNorm(normed, inverse, input, weights.attentionNorm, rows, width, normEpsilon);
  if (biased) fillRows(qkv, weights.qkvBias, rows);
  multiply(stack, layer, 'qkv', qkv, normed, narrowed.qkv, rows, biased);
  if (config.queryKeyNorm) {
    const { projected, queryInverse, keyInverse } = buffers;
    if (projected.length > 0) projected.set(qkv);
    const { queryNorm, keyNorm } = weights;
    kernels.headNorm(qkv, queryInverse, keyInverse, queryNorm, keyNorm, rows, config, normEpsilon);
  }
  kernels.rope(qkv, rope, positions, rows, config, false);
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
    multiply(stack, layer, 'attentionOut', change, keptAttended, narrowed.attentionOut, count, true);
    kernels.add(middle, change, count * width);
  } else {
    multiply(stack, layer, 'attentionOut', middle, keptAttended, narrowed.attentionOut, count, true);
  }

  kernels.rmsNorm(middleNormed, middleInverse, middle, weights.feedForwardNorm, count, width, normEpsilon);
  multiply(stack, layer, 'gateUp', gateUp, middleNormed, narrowed.gateUp, count, false);
  kernels.swiglu(activated, gateUp, count, feedForward);
  if (output === undefined) {
    narrow(stack, layer, 'down', activated, narrowed.down, count);
    return;
  }
  if (output !== middle) output.set(middle);
  multiply(stack, layer, 'down', output, activated, narrowed.down, count, true);
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
  // Of adapters:
  readonly dNarrowed: Float32Array; // [R, the largest n · rank]
  readonly dBlocks: Float32Array; // [n · rank, outputs] of the largest matrix
  readonly dGain: Float32Array; // [width or headDim], of the frozen gains: written, never read
}

export function backwardBuffers(
  arena: Arena,
  config: DecoderConfig,
  rows: number,
  adapters: readonly AdaptedRows[],
): BackwardBuffers {
  const most = (size: (matrix: PackedAdapter['matrices'][number]) => number) =>
    Math.max(0, ...adapters.flatMap(({ adapter }) => adapter?.matrices.map(size) ?? []));
  const frozenGains = adapters.length === 0 ? 0 : Math.max(config.width, config.headDim);
  return {
    dActivated: arena.take(rows * config.feedForward),
    dGateUp: arena.take(rows * 2 * config.feedForward),
    dNormed: arena.take(rows * config.width),
    dAttended: arena.take(rows * config.heads * config.headDim),
    dKeptAttended: arena.take(rows * config.heads * config.headDim),
    dQkv: arena.take(rows * qkvWidth(config)),
    ones: arena.take(config.attentionBias === undefined ? 0 : rows).fill(1),
    dNarrowed: arena.take(rows * most(({ width }) => width)),
    dBlocks: arena.take(most(({ width, outputs }) => width * outputs)),
    dGain: arena.take(frozenGains).fill(0),
  };
}

/**
 * Takes the gradient of the layer's output, `dOutput` [K, width], and leaves that of its input in `dInput` [R, width]: the
 * same buffer where all rows are kept, a zeroed one otherwise. `gradient` is added to. Below the first layer of an adapter's
 * base nothing is trained: what leads there is not computed, and `dInput` holds nothing.
 */
export function backwardLayer(
  stack: Stack,
  gradient: Gradient,
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
  buffers: BackwardBuffers,
): void {
  const { kernels, config, rope, tensors } = stack;
  const { dActivated, dGateUp, dNormed, dAttended, dKeptAttended, dQkv, ones, dGain } = buffers;
  const { narrowed } = saved;
  const { width, heads, headDim, feedForward } = config;
  const weights = tensors.layers[layer] as DecoderTensors['layers'][number];
  // Of an adapter's base nothing is trained: its gains get no gradient, its matrices and biases none either.
  const grads = gradient.decoder?.layers[layer];
  const count = keptCount({ rows, kept });

  const fedForward = { x: saved.activated, narrowed: narrowed.down };
  multiplyBackward(stack, gradient, layer, 'down', dActivated, dOutput, fedForward, buffers, count);
  kernels.swigluBackward(dGateUp, dActivated, saved.gateUp, count, feedForward);
  const gated = { x: saved.middleNormed, narrowed: narrowed.gateUp };
  multiplyBackward(stack, gradient, layer, 'gateUp', dNormed, dGateUp, gated, buffers, count);
  kernels.rmsNormBackward(
    dOutput,
    grads?.feedForwardNorm ?? dGain,
    dNormed,
    saved.middle,
    weights.feedForwardNorm,
    saved.middleInverse,
    count,
    width,
  );

  if (config.attentionBias === 'qkvo' && grads !== undefined)
    kernels.linearWeightGradient(grads.attentionOutBias, ones, dOutput, count, 1, width);
  const dContext = kept === undefined ? dAttended : dKeptAttended;
  const context = { x: saved.keptAttended, narrowed: narrowed.attentionOut };
  multiplyBackward(stack, gradient, layer, 'attentionOut', dContext, dOutput, context, buffers, count);
  if (kept !== undefined) {
    kernels.embedBackward(dInput, dOutput, kept, count, width); // a scatter of rows
    dAttended.fill(0);
    kernels.embedBackward(dAttended, dKeptAttended, kept, count, heads * headDim);
  }
  const leadsOn = layer > 0 || grads !== undefined;
  if (!leadsOn && stack.adapters[0]?.adapter?.layers[layer]?.qkv === undefined) return;
  kernels.attentionBackward(dQkv, dAttended, saved.attended, saved.logSumExp, saved.qkv, starts, sequences, config);
  kernels.rope(dQkv, rope, positions, rows, config, true);
  if (config.queryKeyNorm) {
    const { projected, queryInverse, keyInverse } = saved;
    const { queryNorm, keyNorm } = weights;
    kernels.headNormBackward(
      dQkv,
      grads?.queryNorm ?? dGain,
      grads?.keyNorm ?? dGain,
      projected,
      queryNorm,
      keyNorm,
      queryInverse,
      keyInverse,
      rows,
      config,
    );
  }
  if (config.attentionBias !== undefined && grads !== undefined)
    kernels.linearWeightGradient(grads.qkvBias, ones, dQkv, rows, 1, qkvWidth(config));
  const attending = { x: saved.normed, narrowed: narrowed.qkv };
  multiplyBackward(stack, gradient, layer, 'qkv', leadsOn ? dNormed : undefined, dQkv, attending, buffers, rows);
  if (!leadsOn) return;
  kernels.rmsNormBackward(
    dInput,
    grads?.attentionNorm ?? dGain,
    dNormed,
    saved.input,
    weights.attentionNorm,
    saved.inverse,
    rows,
    width,
  );
}
