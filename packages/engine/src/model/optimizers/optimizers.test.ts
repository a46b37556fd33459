import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../../base/core/errors.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';
import { FlatOptimizer } from '../decoder/flat-optimizer.js';
import { defaultOptimizer, optimizerNamed, optimizers, optimizerTypes, usedBuffers } from './index.js';

describe('the list of optimisers', () => {
  it('has each name once, the default first', () => {
    expect(optimizerTypes).toEqual(['adamw', 'sgd', 'nigt']);
    expect(optimizerTypes[0]).toBe(defaultOptimizer);
    expect(() => optimizerNamed('adam')).toThrow(ArgumentError);
    expect(() => optimizerNamed('adam')).toThrow('unknown optimiser "adam"; there are adamw, sgd, nigt');
  });
});

describe.each(optimizers.map((each) => [each.type, each] as const))(
  '%s',
  (type, { schema, rates, buffers, takesScaleOut }) => {
    const settings = schema(rates.policy).parse({ type });

    it('has its default learning rate, and a description of every setting', () => {
      expect(settings).toMatchObject({ type, learningRate: rates.policy });
      for (const [name, setting] of Object.entries(schema(1).shape))
        if (name !== 'type') expect(setting.description, name).toMatch(/\.$/);
    });

    it('moves the weights against the gradient, and remembers the buffers that its settings use', () => {
      const kernels = createReferenceKernels();
      const optimizer = new FlatOptimizer(kernels, 3);
      const weights = Float32Array.of(1, -1, 0.5);
      optimizer.update(settings, weights, Float32Array.of(2, -3, 0), 1);
      expect(weights[0]).toBeLessThan(1);
      expect(weights[1]).toBeGreaterThan(-1);
      expect(weights[2]).toBe(0.5);
      expect(Object.keys(optimizer.state.buffers)).toEqual(usedBuffers(settings));
      for (const name of usedBuffers(settings)) expect(Object.keys(buffers)).toContain(name);
    });

    it('takes the scale of gradients out, or does not, as it declares', () => {
      const after = (scale: number) => {
        const optimizer = new FlatOptimizer(createReferenceKernels(), 3);
        const weights = new Float32Array(3);
        for (const gradient of [
          [2, -3, 0.5],
          [-1, 0, 2],
        ])
          optimizer.update(
            settings,
            weights,
            Float32Array.from(gradient, (each) => scale * each),
            1,
          );
        return [...weights];
      };
      const [one, large] = [after(1), after(16)];
      const isSame = one.every((weight, i) => Math.abs(weight - (large[i] as number)) < 1e-4 * Math.abs(weight) + 1e-9);
      expect(isSame).toBe(takesScaleOut);
    });
  },
);

it('SGD remembers a direction only with a momentum', () => {
  const plain = { type: 'sgd', learningRate: 1, momentum: 0, nesterov: false, weightDecay: 0 };
  expect(usedBuffers(plain)).toEqual([]);
  expect(usedBuffers({ ...plain, momentum: 0.9 })).toEqual(['momentum']);
});
