/** One layer of the decoder's stack, backward: the formulas of layer-forward.ts, differentiated by hand. */
import type { Floats } from '../../../tensor/memory.js';
import { convolves, qkvWidth } from '../weights/decoder-tensors.js';
import type { Gradient } from '../weights/model-weights.js';
import type { LayerGains } from '../weights/packed-decoder.js';
import type { BatchAttention } from './batch-attention.js';
import { type BackwardBuffers, keptCount, type LayerBuffers, type LayerRows } from './layer-buffers.js';
import { multiplyBackward, type Stack } from './matrix-products.js';

export interface LayerBackward {
  readonly layer: number;
  readonly rows: LayerRows;
  readonly attention: BatchAttention;
  readonly saved: LayerBuffers;
  /** The gradient of the layer's output; it is overwritten. */
  readonly dOutput: Floats; // [K, width]
  /**
   * The buffer for the gradient of the layer's input: `dOutput` itself if all rows are kept, a zeroed one otherwise.
   */
  readonly dInput: Floats; // [R, width]
}

/**
 * Computes the gradient of the layer's input from the gradient of its output, and adds the gradients of the layer's
 * weights to `gradient`. Below the first layer of an adapter's base no weight is trained, so the gradient of that
 * layer's input is not computed and `dInput` is undefined.
 */
export function backwardLayer(
  stack: Stack,
  gradient: Gradient,
  { layer, rows: { rows, positions, kept }, attention, saved, dOutput, dInput }: LayerBackward,
  buffers: BackwardBuffers,
): void {
  const { kernels, config, ropes } = stack;
  const { dActivated, dGateUp, dNormed, dResult, dAttended, dKeptAttended, dQkv, ones, dGain, dKeyGain, dTaps } =
    buffers;
  const { downProjected } = saved;
  const { width, heads, headDim, feedForward } = config;
  const gains = stack.packed.gains.layers[layer] as LayerGains;
  // An adapter's base is not trained: its gains, matrices and biases have no gradient.
  const grads = gradient.decoder?.layers[layer];
  const count = keptCount({ rows, kept });

  /** The gradient of a result that is normalised before it is added, from the gradient of the sum. */
  const ofResult = (part: 'attention' | 'feedForward'): Floats => {
    if (!config.resultNorms) return dOutput;
    kernels.fill({ x: dResult, value: 0 });
    kernels.rmsNormBackward({
      dx: dResult,
      dGain: grads?.[`${part}ResultNorm`] ?? dGain,
      dOut: dOutput,
      x: saved[`${part}Result`],
      gain: gains[`${part}ResultNorm`],
      inverse: saved[`${part}ResultInverse`],
      rows: count,
      width,
    });
    return dResult;
  };

  const dFeedForward = ofResult('feedForward');
  const down = { x: saved.activated, downProjected: downProjected.down, dOut: dFeedForward, dx: dActivated };
  multiplyBackward(stack, gradient, { layer, matrix: 'down', rows: count, ...down }, buffers);
  const gateBackward = config.gate === 'gelu' ? 'gegluBackward' : 'swigluBackward';
  kernels[gateBackward]({ dGateUp, dOut: dActivated, gateUp: saved.gateUp, rows: count, feedForward });
  const gateUp = { x: saved.middleNormed, downProjected: downProjected.gateUp, dOut: dGateUp, dx: dNormed };
  multiplyBackward(stack, gradient, { layer, matrix: 'gateUp', rows: count, ...gateUp }, buffers);
  kernels.rmsNormBackward({
    dx: dOutput,
    dGain: grads?.feedForwardNorm ?? dGain,
    dOut: dNormed,
    x: saved.middle,
    gain: gains.feedForwardNorm,
    inverse: saved.middleInverse,
    rows: count,
    width,
  });

  const dAttention = ofResult('attention');
  if (config.attentionBias === 'qkvo' && grads !== undefined)
    kernels.linearWeightGradient({
      dWeight: grads.attentionOutBias,
      x: ones,
      dOut: dAttention,
      rows: count,
      inputs: 1,
      outputs: width,
    });
  const attentionOut = {
    x: saved.keptAttended,
    downProjected: downProjected.attentionOut,
    dOut: dAttention,
    dx: kept === undefined ? dAttended : dKeptAttended,
  };
  multiplyBackward(stack, gradient, { layer, matrix: 'attentionOut', rows: count, ...attentionOut }, buffers);
  if (kept !== undefined) {
    kernels.embedBackward({ dTable: dInput, dOut: dOutput, tokens: kept, rows: count, width }); // a scatter of rows
    kernels.fill({ x: dAttended, value: 0 });
    kernels.embedBackward({
      dTable: dAttended,
      dOut: dKeptAttended,
      tokens: kept,
      rows: count,
      width: heads * headDim,
    });
  }
  // Whether weights below this layer, or this layer's norm, need the gradient of the input.
  const needsInputGradient = layer > 0 || grads !== undefined;
  if (!needsInputGradient && stack.adapters[0]?.adapter?.layers[layer]?.qkv === undefined) return;
  attention.backward(layer, saved, dAttended, { dQkv, dTaps: grads?.convolution ?? dTaps });
  const table = ropes[layer];
  if (table !== undefined) kernels.rope({ qkv: dQkv, table, positions, rows, heads: config, inverse: true });
  if (config.queryKeyNorm && !convolves(config, layer)) {
    const { projected, queryInverse, keyInverse } = saved;
    const { queryNorm, keyNorm } = gains;
    kernels.headNormBackward({
      dQkv,
      dQueryGain: grads?.queryNorm ?? dGain,
      dKeyGain: grads?.keyNorm ?? dKeyGain,
      qkv: projected,
      queryGain: queryNorm,
      keyGain: keyNorm,
      queryInverse,
      keyInverse,
      rows,
      heads: config,
    });
  }
  if (config.attentionBias !== undefined && grads !== undefined)
    kernels.linearWeightGradient({
      dWeight: grads.qkvBias,
      x: ones,
      dOut: dQkv,
      rows,
      inputs: 1,
      outputs: qkvWidth(config),
    });
  const qkv = {
    x: saved.normed,
    downProjected: downProjected.qkv,
    dOut: dQkv,
    dx: needsInputGradient ? dNormed : undefined,
  };
  multiplyBackward(stack, gradient, { layer, matrix: 'qkv', rows, ...qkv }, buffers);
  if (!needsInputGradient) return;
  kernels.rmsNormBackward({
    dx: dInput,
    dGain: grads?.attentionNorm ?? dGain,
    dOut: dNormed,
    x: saved.input,
    gain: gains.attentionNorm,
    inverse: saved.inverse,
    rows,
    width,
  });
}
