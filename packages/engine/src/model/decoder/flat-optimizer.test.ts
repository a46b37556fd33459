import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../../../../../test/support/adamw.js';
import type { OptimizerSettings } from '../../contract/optimizer-settings.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';
import type { SgdSettings } from '../optimizers/sgd.js';
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

describe('N-PG-IGT', () => {
  const nigt = (changes: object = {}) => ({ type: 'nigt', learningRate: 0.1, momentum: 0.5, ...changes }) as const;

  it('moves by the learning rate along the momentum, and takes gradients ahead of the iterate', () => {
    // By algorithm 1 of arXiv 2302.01734, in double precision; the policy plays the look-ahead point.
    let [iterate, last, direction] = [
      [1, -2],
      [1, -2],
      [0, 0],
    ];
    const expected = gradients.map((gradient, t) => {
      direction = direction.map((d, i) =>
        t === 0 ? (gradient[i] as number) : 0.5 * d + 0.5 * (gradient[i] as number),
      );
      const length = Math.hypot(...direction);
      [last, iterate] = [iterate, iterate.map((w, i) => w - (0.1 * (direction[i] as number)) / length)];
      return iterate.map((w, i) => w + ((1 - 0.5) / 0.5) * (w - (last[i] as number)));
    });
    const rows = stepsOf(new FlatOptimizer(kernels, 2), nigt(), start());
    expected.forEach((row, r) => {
      row.forEach((weight, i) => {
        expect(rows[r]?.[i]).toBeCloseTo(weight, 6);
      });
    });
  });

  it('does not see the scale of the gradients', () => {
    const plain = stepsOf(new FlatOptimizer(kernels, 2), nigt(), start());
    const larger = stepsOf(new FlatOptimizer(kernels, 2), nigt(), start(), 1 / 64);
    expect(larger).toEqual(plain);
    const optimizer = new FlatOptimizer(kernels, 2);
    const scaled = gradients.map((gradient) => gradient.map((g) => 256 * g));
    const weights = start();
    const rows = scaled.map((gradient) => {
      optimizer.update(nigt(), weights, Float32Array.from(gradient), 1);
      return [...weights];
    });
    expect(rows).toEqual(plain);
  });

  it('without momentum every step is as long as the learning rate, and a gradient of 0 moves nothing', () => {
    const optimizer = new FlatOptimizer(kernels, 2);
    const weights = start();
    let before = [...weights];
    for (const row of stepsOf(optimizer, nigt({ momentum: 0 }), weights)) {
      expect(Math.hypot(...row.map((w, i) => w - (before[i] as number)))).toBeCloseTo(0.1, 6);
      before = row;
    }
    optimizer.update(nigt({ momentum: 0 }), weights, kernels.allocate(2), 1);
    expect([...weights]).toEqual(before);
  });

  it('on a quadratic its momentum is the gradient at the iterate: what looking ahead is for', () => {
    // f(w) = |w|² / 2: the gradient at the point ahead transports the old direction to the new iterate.
    const optimizer = new FlatOptimizer(kernels, 2);
    const weights = start();
    for (let step = 0; step < 8; step++) {
      const iterate = [...weights].map(
        (w, i) => w - ((optimizer.state.buffers.ahead as Float32Array | undefined)?.[i] ?? 0),
      );
      optimizer.update(nigt({ momentum: 0.8 }), weights, Float32Array.from(weights), 1);
      const direction = optimizer.state.buffers.direction as Float32Array;
      iterate.forEach((w, i) => {
        expect(direction[i]).toBeCloseTo(w, 5);
      });
    }
  });
});

describe('an optimiser', () => {
  it.each<[string, OptimizerSettings]>([
    ['SGD', sgd({ momentum: 0.9 })],
    ['AdamW', adamw],
    ['N-PG-IGT', { type: 'nigt', learningRate: 0.1, momentum: 0.8 }],
  ])('%s goes on from its state bit for bit', async (_, settings) => {
    const [one, weights] = [new FlatOptimizer(kernels, 2), start()];
    stepsOf(one, settings, weights);
    const [two, copy] = [new FlatOptimizer(kernels, 2), kernels.allocate(2)];
    copy.set(weights);
    two.restore(await one.copyState());
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
