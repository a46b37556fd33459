import { describe, expect, it } from 'vitest';
import { expectSameBits } from '../../../../../../test/support/expectations.js';
import { onHost, tensorsOnHost } from '../../../../../../test/support/on-host.js';
import { RandomStream } from '../../../base/core/random.js';
import type { DecoderConfig } from '../../../contract/architecture.js';
import { Arena } from '../../../tensor/arena.js';
import type { Floats } from '../../../tensor/memory.js';
import { createReferenceKernels } from '../../../tensor/reference/reference.js';
import { type PackedBatch, packBatches, type Sequence } from '../packed-batch.js';
import { initialise } from '../weights/decoder-tensors.js';
import { DecoderWeights, type Gradient, zeroGradient } from '../weights/model-weights.js';
import { type Keep, LayerStack, type TrunkPass } from './layer-stack.js';

const config: DecoderConfig = {
  vocabSize: 7,
  width: 6,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 4,
  feedForward: 5,
  context: 16,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
  attentionBias: 'qkvo',
  queryKeyNorm: true,
};
const kernels = createReferenceKernels();
const weights = new DecoderWeights(kernels, config);
initialise(config, tensorsOnHost(weights.tensors), 1);
const model = { decoder: weights, adapter: undefined, trained: weights };

/** Predicts every second token; the last token of a sequence gets no row. */
const sequenceOf = (...tokens: number[]): Sequence => ({
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(tokens, (_, t) => t % 2),
  temperature: 1,
});
const sequences = [sequenceOf(1, 2, 3, 4, 5, 6), sequenceOf(3, 0, 2)];

interface Passed {
  readonly batch: PackedBatch;
  readonly pass: TrunkPass;
  backward(gradient: Gradient, dNormed: Float32Array): void;
}

/** The pass of one batch that holds all sequences; `all` computes every row instead of those that predict. */
function passOf(input: readonly Sequence[], keep: Keep, all = false): Passed {
  const arena = new Arena(kernels);
  const stack = new LayerStack(kernels, arena, model, 'float32');
  const [batch] = packBatches(arena, input, { context: config.context, maxRows: 100, tree: false });
  if (batch === undefined) throw new Error('expected a batch');
  const pass = stack.forward(batch, all ? undefined : batch.predicting, keep);
  return { batch, pass, backward: (gradient, dNormed) => stack.backward(pass, gradient, dNormed, keep === 'inputs') };
}

/** Row `row` of a matrix of the model's width. */
const rowOf = (matrix: Floats, row: number) => onHost(matrix).slice(row * config.width, (row + 1) * config.width);

describe('the layers of a decoder', () => {
  it('have a row for every token but the last ones, and keep those that predict after the last attention', () => {
    const { batch, pass } = passOf(sequences, 'all');
    expect([batch.rows, [...(batch.predicting as Int32Array)]]).toEqual([5 + 2, [0, 2, 4, 5]]);
    expect([pass.final.length, pass.normed.length, pass.inverse.length]).toEqual([4 * 6, 4 * 6, 4]);
    expect(pass.layers).toHaveLength(config.layers);
    const [first, last] = pass.layers;
    expect(first?.qkv.length).toBe(7 * (2 + 2) * 4); // queries of two heads, keys and values of one
    expect(first?.gateUp.length).toBe(7 * 2 * 5);
    expect(last?.attended.length).toBe(7 * 2 * 4);
    expect(last?.gateUp.length).toBe(4 * 2 * 5);
  });

  it('give the same bits whatever is kept for the backward pass, and in a pass of all rows', () => {
    const { batch, pass } = passOf(sequences, 'all');
    for (const keep of ['inputs', 'nothing'] as const)
      expectSameBits(onHost(passOf(sequences, keep).pass.normed), onHost(pass.normed));
    const whole = passOf(sequences, 'nothing', true).pass.normed;
    expect(whole.length).toBe(7 * 6);
    (batch.predicting as Int32Array).forEach((row, n) => {
      expectSameBits(rowOf(whole, row), rowOf(pass.normed, n));
    });
  });

  it('let a token see those before it in its sequence, and nothing else', () => {
    const normed = (input: readonly Sequence[]) => passOf(input, 'nothing', true).pass.normed;
    const before = normed(sequences);
    const after = normed([sequenceOf(1, 2, 3, 6, 5, 6), sequenceOf(3, 0, 2)]); // the token of row 3 is another one
    for (const row of [0, 1, 2, 5, 6]) expectSameBits(rowOf(after, row), rowOf(before, row));
    for (const row of [3, 4]) expect(rowOf(after, row)).not.toEqual(rowOf(before, row));
  });

  it.each(['all', 'inputs'] as const)('have the gradient that finite differences give, having kept %s', (keep) => {
    const random = new RandomStream('layers');
    const upstream = Float32Array.from({ length: 4 * config.width }, () => random.normal());
    const loss = () =>
      onHost(passOf(sequences, 'nothing').pass.normed).reduce((sum, x, i) => sum + x * (upstream[i] as number), 0);
    const gradient = zeroGradient(kernels, model);
    passOf(sequences, keep).backward(gradient, Float32Array.from(upstream));
    const { flat, layers, embedding, finalNorm } = tensorsOnHost(weights.tensors);
    const named = {
      embedding,
      finalNorm,
      ...layers[0],
      'of the last layer, down': layers[1]?.down ?? new Float32Array(),
    };
    for (const [name, tensor] of Object.entries(named)) {
      if (tensor.length === 0) continue; // of a feature that the decoder lacks
      const first = (tensor.byteOffset - flat.byteOffset) / 4;
      const before = Float32Array.from(tensor);
      const direction = Array.from(tensor, () => random.normal());
      const at = (step: number) => {
        tensor.forEach((_, i) => {
          tensor[i] = (before[i] as number) + step * (direction[i] as number);
        });
        weights.changed();
        return loss();
      };
      // Richardson's extrapolation, so that the step can be large against the rounding of float32.
      const numeric = (4 * (at(2e-3) - at(-2e-3))) / 4e-3 / 3 - (at(4e-3) - at(-4e-3)) / 8e-3 / 3;
      tensor.set(before);
      weights.changed();
      const slopes = onHost(gradient.flat).subarray(first, first + tensor.length);
      const analytic = direction.reduce((sum, d, i) => sum + d * (slopes[i] as number), 0);
      expect(Math.abs(numeric - analytic) / (Math.hypot(...direction) * Math.hypot(...slopes)), name).toBeLessThan(
        2e-3,
      );
    }
  });
});
