import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../../../test/support/adamw.js';
import type { OptimizerSettings, SgdSettings } from '../../contract/optimizer-settings.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';
import { FlatOptimizer } from './flat-optimizer.js';

const kernels = createReferenceKernels();
const gradients = [
  [0.5, 1],
  [-1, 0.25],
  [0.25, 0],
];
const sgd = (changes: Partial<SgdSettings> = {}): SgdSettings => ({
  type: 'sgd',
  learningRate: 0.1,
  momentum: 0,
  nesterov: false,
  weightDecay: 0,
  ...changes,
});
const adamw = plainAdamW(0.1);

function stepsOf(optimizer: FlatOptimizer, settings: OptimizerSettings, weights: Float32Array, scale = 1): number[][] {
  return gradients.map((gradient) => {
    const buffer = kernels.allocate(2);
    buffer.set(gradient.map((g) => g / scale));
    optimizer.update(settings, weights, buffer, scale);
    return [...weights];
  });
}

const start = () => {
  const weights = kernels.allocate(2);
  weights.set([1, -2]);
  return weights;
};

describe('SGD', () => {
  // By torch.optim.SGD's formula, in exact fractions.
  it.each([
    [
      {},
      [
        [0.95, -2.1],
        [1.05, -2.125],
        [1.025, -2.125],
      ],
    ],
    [
      { weightDecay: 0.1 },
      [
        [0.94, -2.08],
        [1.0306, -2.0842],
        [0.995294, -2.063358],
      ],
    ],
    [
      { momentum: 0.9 },
      [
        [0.95, -2.1],
        [1.005, -2.215],
        [1.0295, -2.3185],
      ],
    ],
    [
      { momentum: 0.9, weightDecay: 0.1 },
      [
        [0.94, -2.08],
        [0.9766, -2.1562],
        [0.974774, -2.203218],
      ],
    ],
    [
      { momentum: 0.9, weightDecay: 0.1, nesterov: true },
      [
        [0.886, -2.152],
        [1.010566, -2.223412],
        [0.973948646, -2.242305972],
      ],
    ],
  ])('steps as torch does: %j', (changes, expected) => {
    const rows = stepsOf(new FlatOptimizer(kernels, 2), sgd(changes), start());
    expected.forEach((row, r) => {
      row.forEach((weight, i) => {
        expect(rows[r]?.[i]).toBeCloseTo(weight, 6);
      });
    });
  });

  it('scales the gradient, not the weight decay', () => {
    const settings = sgd({ weightDecay: 0.1, momentum: 0.5 });
    const plain = stepsOf(new FlatOptimizer(kernels, 2), settings, start());
    expect(stepsOf(new FlatOptimizer(kernels, 2), settings, start(), 0.25)).toEqual(plain);
  });

  it('remembers nothing without momentum', () => {
    const optimizer = new FlatOptimizer(kernels, 2);
    stepsOf(optimizer, sgd(), start());
    expect(optimizer.state).toEqual({ type: 'sgd', step: 3, buffers: {} });
  });
});

describe('an optimiser', () => {
  it.each<[string, OptimizerSettings]>([
    ['SGD', sgd({ momentum: 0.9 })],
    ['AdamW', adamw],
  ])('%s goes on from its state bit for bit', (_, settings) => {
    const [one, weights] = [new FlatOptimizer(kernels, 2), start()];
    stepsOf(one, settings, weights);
    const [two, copy] = [new FlatOptimizer(kernels, 2), kernels.allocate(2)];
    copy.set(weights);
    two.restore(one.state);
    expect(stepsOf(two, settings, copy)).toEqual(stepsOf(one, settings, weights));
    two.reset();
    const fresh = stepsOf(new FlatOptimizer(kernels, 2), settings, start());
    expect(stepsOf(two, settings, start())).toEqual(fresh);
  });

  it('begins anew when its type changes', () => {
    const optimizer = new FlatOptimizer(kernels, 2);
    stepsOf(optimizer, adamw, start());
    const fresh = stepsOf(new FlatOptimizer(kernels, 2), sgd({ momentum: 0.9 }), start());
    expect(stepsOf(optimizer, sgd({ momentum: 0.9 }), start())).toEqual(fresh);
    expect(Object.keys(optimizer.state.buffers)).toEqual(['momentum']);
  });
});
