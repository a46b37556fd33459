/** One layer of the decoder's stack, backward: the formulas of layer-forward.ts, differentiated by hand. */
import type { Floats } from '../../../tensor/memory.js';
import { convolves, type Matrix, qkvWidth } from '../weights/decoder-tensors.js';
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

  const throughNorm = (name: keyof LayerGains, dx: Floats, dOut: Floats, x: Floats, inverse: Floats, of = count) =>
    kernels.rmsNormBackward({
      dx,
      dGain: grads?.[name] ?? dGain,
      dOut,
      x,
      gain: gains[name],
      inverse,
      rows: of,
      width,
    });
  const throughBias = (dWeight: Floats, dOut: Floats, of: number, outputs: number) =>
    kernels.linearWeightGradient({ dWeight, x: ones, dOut, rows: of, inputs: 1, outputs });
  const throughProduct = (matrix: Matrix, x: Floats, dOut: Floats, dx: Floats | undefined, of = count) => {
    const product = { layer, matrix, rows: of, x, downProjected: downProjected[matrix], dOut, dx };
    multiplyBackward(stack, gradient, product, buffers);
  };
  /** The gradient of a result that is normalised before it is added, from the gradient of the sum. */
  const ofResult = (part: 'attention' | 'feedForward'): Floats => {
    if (!config.resultNorms) return dOutput;
    kernels.fill({ x: dResult, value: 0 });
    throughNorm(`${part}ResultNorm`, dResult, dOutput, saved[`${part}Result`], saved[`${part}ResultInverse`]);
    return dResult;
  };

  throughProduct('down', saved.activated, ofResult('feedForward'), dActivated);
  const gateBackward = config.gate === 'gelu' ? 'gegluBackward' : 'swigluBackward';
  kernels[gateBackward]({ dGateUp, dOut: dActivated, gateUp: saved.gateUp, rows: count, feedForward });
  throughProduct('gateUp', saved.middleNormed, dGateUp, dNormed);
  throughNorm('feedForwardNorm', dOutput, dNormed, saved.middle, saved.middleInverse);

  const dAttention = ofResult('attention');
  if (config.attentionBias === 'qkvo' && grads !== undefined)
    throughBias(grads.attentionOutBias, dAttention, count, width);
  throughProduct('attentionOut', saved.keptAttended, dAttention, kept === undefined ? dAttended : dKeptAttended);
  if (kept !== undefined) {
    const scattered = { tokens: kept, rows: count };
    kernels.embedBackward({ dTable: dInput, dOut: dOutput, ...scattered, width });
    kernels.fill({ x: dAttended, value: 0 });
    kernels.embedBackward({ dTable: dAttended, dOut: dKeptAttended, ...scattered, width: heads * headDim });
  }
  // Whether weights below this layer, or this layer's norm, need the gradient of the input.
  const needsInputGradient = layer > 0 || grads !== undefined;
  if (!needsInputGradient && stack.adapters[0]?.adapter?.layers[layer]?.qkv === undefined) return;
  attention.backward(layer, saved, dAttended, { dQkv, dTaps: grads?.convolution ?? dTaps });
  const table = ropes[layer];
  if (table !== undefined) kernels.rope({ qkv: dQkv, table, positions, rows, heads: config, inverse: true });
  if (config.queryKeyNorm && !convolves(config, layer)) {
    const { projected: qkv, queryInverse, keyInverse } = saved;
    const { queryNorm: queryGain, keyNorm: keyGain } = gains;
    const ofGains = { dQueryGain: grads?.queryNorm ?? dGain, dKeyGain: grads?.keyNorm ?? dKeyGain };
    const normalised = { qkv, queryGain, keyGain, queryInverse, keyInverse };
    kernels.headNormBackward({ dQkv, ...ofGains, ...normalised, rows, heads: config });
  }
  if (config.attentionBias !== undefined && grads !== undefined)
    throughBias(grads.qkvBias, dQkv, rows, qkvWidth(config));
  throughProduct('qkv', saved.normed, dQkv, needsInputGradient ? dNormed : undefined, rows);
  if (needsInputGradient) throughNorm('attentionNorm', dInput, dNormed, saved.input, saved.inverse, rows);
}
