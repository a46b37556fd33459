/**
 * One layer of the decoder's stack, forward:
 *   middle = input + attention(rope(norm(input) Wqkv)) Wo
 *   output = middle + gate(norm(middle) Wgu) Wdown
 * where Wqkv and Wo may add a bias, queries and keys may be normalised head by head before the rotation, the results of
 * Wo and Wdown may be normalised before they are added, the gate is SwiGLU or GEGLU, and any of the matrices may be
 * adapted (see adapter-tensors.ts). A layer may convolve in place of attending: Wqkv gives B, C and x, and
 *   attention(norm(input) Wqkv) = C · convolution(B · x)
 * One forward pass serves training, prefill and decoding, which differ only in where attention reads keys and values;
 * so their numbers cannot differ. The R rows are the tokens of all sequences of a batch, one after another. The part
 * behind attention is computed for K rows: all of them, but in the last layer only those that predict a token.
 */
import type { Floats } from '../../../tensor/memory.js';
import { convolves, type DecoderTensors } from '../weights/decoder-tensors.js';
import type { LayerGains } from '../weights/packed-decoder.js';
import { keptCount, type LayerBuffers, type LayerRows } from './layer-buffers.js';
import { downProject, multiply, type Product, type Stack } from './matrix-products.js';

export interface LayerForward {
  readonly layer: number;
  readonly rows: LayerRows;
  readonly buffers: LayerBuffers;
  /**
   * The layer's output, which may be `buffers.middle`. Without one, only the values that a backward pass reads are
   * computed. A model that normalises results needs one in any case.
   */
  readonly output: Floats | undefined; // [K, width]
  /**
   * Turns queries and keys in `buffers.qkv` by their positions, if the layer does, and fills `buffers.attended`. A
   * layer that convolves fills it from B, C and x.
   */
  readonly attend: (layer: number, buffers: LayerBuffers) => void;
}

export function forwardLayer(
  stack: Stack,
  { layer, rows: { rows, kept }, buffers, output, attend }: LayerForward,
): void {
  const { kernels, config, tensors } = stack;
  const { width, heads, headDim, feedForward, normEpsilon } = config;
  const weights = tensors.layers[layer] as DecoderTensors['layers'][number];
  const gains = stack.packed.gains.layers[layer] as LayerGains;
  const { input, normed, inverse, qkv, attended, keptInput, keptAttended, downProjected } = buffers;
  const { middle, middleNormed, middleInverse, gateUp, activated } = buffers;

  kernels.rmsNorm({ out: normed, inverse, x: input, gain: gains.attentionNorm, rows, width, epsilon: normEpsilon });
  multiply(stack, {
    layer,
    matrix: 'qkv',
    rows,
    x: normed,
    downProjected: downProjected.qkv,
    out: qkv,
    before: config.attentionBias === undefined ? undefined : { bias: weights.qkvBias },
  });
  if (config.queryKeyNorm && !convolves(config, layer)) {
    const { projected, queryInverse, keyInverse } = buffers;
    if (projected.length > 0) kernels.copy({ to: projected, from: qkv });
    const { queryNorm, keyNorm } = gains;
    kernels.headNorm({
      qkv,
      queryInverse,
      keyInverse,
      queryGain: queryNorm,
      keyGain: keyNorm,
      rows,
      heads: config,
      epsilon: normEpsilon,
    });
  }
  attend(layer, buffers);

  const count = keptCount({ rows, kept });
  if (kept !== undefined) {
    kernels.embed({ out: keptInput, table: input, tokens: kept, rows: count, width }); // a gather of rows
    kernels.embed({ out: keptAttended, table: attended, tokens: kept, rows: count, width: heads * headDim });
  }
  const { resultNorms } = config;
  const outputBias = config.attentionBias === 'qkvo';
  // `middleNormed` is free until the normalisation below.
  const attentionOut = resultNorms ? buffers.attentionResult : outputBias ? middleNormed : middle;
  let before: Product['before'] = outputBias ? { bias: weights.attentionOutBias } : { residual: keptInput };
  if (resultNorms && !outputBias) before = undefined;
  multiply(stack, {
    layer,
    matrix: 'attentionOut',
    rows: count,
    x: keptAttended,
    downProjected: downProjected.attentionOut,
    out: attentionOut,
    before,
  });
  if (resultNorms)
    kernels.rmsNorm({
      out: middleNormed,
      inverse: buffers.attentionResultInverse,
      x: attentionOut,
      gain: gains.attentionResultNorm,
      rows: count,
      width,
      epsilon: normEpsilon,
    });
  if (outputBias || resultNorms) {
    if (middle !== keptInput) kernels.copy({ to: middle, from: keptInput });
    kernels.add({ out: middle, x: middleNormed, length: count * width });
  }

  kernels.rmsNorm({
    out: middleNormed,
    inverse: middleInverse,
    x: middle,
    gain: gains.feedForwardNorm,
    rows: count,
    width,
    epsilon: normEpsilon,
  });
  multiply(stack, {
    layer,
    matrix: 'gateUp',
    rows: count,
    x: middleNormed,
    downProjected: downProjected.gateUp,
    out: gateUp,
    before: undefined,
  });
  kernels[config.gate === 'gelu' ? 'geglu' : 'swiglu']({ out: activated, gateUp, rows: count, feedForward });
  if (output === undefined) {
    downProject(stack, { layer, matrix: 'down', rows: count, x: activated, downProjected: downProjected.down });
    return;
  }
  multiply(stack, {
    layer,
    matrix: 'down',
    rows: count,
    x: activated,
    downProjected: downProjected.down,
    out: resultNorms ? buffers.feedForwardResult : output,
    before: resultNorms ? undefined : { residual: middle },
  });
  if (!resultNorms) return;
  // Without a backward pass the output may be `middle`, and `middleNormed` is free again.
  const added = output === middle ? middleNormed : output;
  kernels.rmsNorm({
    out: added,
    inverse: buffers.feedForwardResultInverse,
    x: buffers.feedForwardResult,
    gain: gains.feedForwardResultNorm,
    rows: count,
    width,
    epsilon: normEpsilon,
  });
  kernels.add({ out: output, x: added === output ? middle : added, length: count * width });
}
