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
import { convolves, type DecoderTensors, type Matrix } from '../weights/decoder-tensors.js';
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

  const count = keptCount({ rows, kept });
  const norm = (name: keyof LayerGains, x: Floats, out: Floats, inverses: Floats, of = count) =>
    kernels.rmsNorm({ out, inverse: inverses, x, gain: gains[name], rows: of, width, epsilon: normEpsilon });
  const product = (matrix: Matrix, x: Floats, out: Floats, before: Product['before'], of = count) =>
    multiply(stack, { layer, matrix, rows: of, x, downProjected: downProjected[matrix], out, before });

  norm('attentionNorm', input, normed, inverse, rows);
  product('qkv', normed, qkv, config.attentionBias === undefined ? undefined : { bias: weights.qkvBias }, rows);
  if (config.queryKeyNorm && !convolves(config, layer)) {
    const { projected, queryInverse, keyInverse } = buffers;
    if (projected.length > 0) kernels.copy({ to: projected, from: qkv });
    const { queryNorm: queryGain, keyNorm: keyGain } = gains;
    const normalised = { qkv, queryInverse, keyInverse, queryGain, keyGain };
    kernels.headNorm({ ...normalised, rows, heads: config, epsilon: normEpsilon });
  }
  attend(layer, buffers);

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
  product('attentionOut', keptAttended, attentionOut, before);
  if (resultNorms) norm('attentionResultNorm', attentionOut, middleNormed, buffers.attentionResultInverse);
  if (outputBias || resultNorms) {
    if (middle !== keptInput) kernels.copy({ to: middle, from: keptInput });
    kernels.add({ out: middle, x: middleNormed, length: count * width });
  }

  norm('feedForwardNorm', middle, middleNormed, middleInverse);
  product('gateUp', middleNormed, gateUp, undefined);
  kernels[config.gate === 'gelu' ? 'geglu' : 'swiglu']({ out: activated, gateUp, rows: count, feedForward });
  if (output === undefined) {
    downProject(stack, { layer, matrix: 'down', rows: count, x: activated, downProjected: downProjected.down });
    return;
  }
  if (!resultNorms) {
    product('down', activated, output, { residual: middle });
    return;
  }
  product('down', activated, buffers.feedForwardResult, undefined);
  // Without a backward pass the output may be `middle`, and `middleNormed` is free again.
  const added = output === middle ? middleNormed : output;
  norm('feedForwardResultNorm', buffers.feedForwardResult, added, buffers.feedForwardResultInverse);
  kernels.add({ out: output, x: added === output ? middle : added, length: count * width });
}
