import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { summariseVariants, type VariantSummary } from '../ablation-summary.js';
import { hypervolume, paretoPicture } from './pareto-front.js';

const [empty] = summariseVariants([], ['']);
const variant = (name: string, rewards: Readonly<Record<string, number>>, runs = 1): VariantSummary => ({
  ...(empty as VariantSummary),
  variant: name,
  runs,
  rewards,
});
const at = (name: string, correct: number, calls: number) =>
  variant(name, { 'reward: correct': correct, 'reward: calls': calls });

describe('the Pareto front', () => {
  it('has the variants that no other one beats, and the share of the box that they cover', () => {
    const variants = [at('right', 1, -3), at('thrifty', 0, -1), at('both', 0.5, -1.5), at('beaten', 0.25, -2)];
    const picture = paretoPicture(variants, ['correct', 'calls']);
    expect(picture?.points.map(({ variant, front }) => [variant, front])).toEqual([
      ['right', true],
      ['thrifty', true],
      ['both', true],
      ['beaten', false],
    ]);
    expect(picture?.points[2]?.values).toEqual([0.5, -1.5]);
    expect(picture?.hypervolume).toBeCloseTo(0.5 * 0.75, 12);
  });

  it('omits variants that lack a part, and needs two variants', () => {
    const other = variant('other', { 'reward: correct': 1 });
    expect(paretoPicture([at('a', 1, 0), other, variant('failed', {}, 0)], ['correct', 'calls'])).toBeUndefined();
    expect(paretoPicture([at('a', 1, 0), at('b', 1, -1), other], ['correct', 'calls'])).toEqual({
      parts: ['correct', 'calls'],
      points: [
        { variant: 'a', values: [1, 0], front: true },
        { variant: 'b', values: [1, -1], front: false },
      ],
    });
  });

  const unit = fc.double({ min: 0, max: 1, noNaN: true });
  const points = fc
    .integer({ min: 1, max: 4 })
    .chain((parts) => fc.array(fc.array(unit, { minLength: parts, maxLength: parts }), { minLength: 1, maxLength: 6 }));

  it('covers the share of points drawn at random', () => {
    fc.assert(
      fc.property(points, (all) => {
        const volume = hypervolume(all);
        const product = Math.max(...all.map((point) => point.reduce((a, b) => a * b, 1)));
        expect(volume).toBeGreaterThanOrEqual(product - 1e-12);
        expect(volume).toBeLessThanOrEqual(1 + 1e-12);
        const grid = 12; // midpoints of the cells of a grid
        const dimensions = all[0]?.length ?? 1;
        const cells = grid ** dimensions;
        let inside = 0;
        for (let cell = 0; cell < cells; cell++) {
          const middle = Array.from(
            { length: dimensions },
            (_, d) => (Math.floor(cell / grid ** d) % grid) / grid + 0.5 / grid,
          );
          if (all.some((point) => point.every((value, d) => value >= (middle[d] as number)))) inside++;
        }
        expect(Math.abs(inside / cells - volume)).toBeLessThanOrEqual(dimensions / grid);
      }),
      { numRuns: 60 },
    );
  });

  it('does not cover less with one more point, and does not depend on the order', () => {
    fc.assert(
      fc.property(points, (all) => {
        expect(hypervolume(all)).toBeGreaterThanOrEqual(hypervolume(all.slice(1)) - 1e-12);
        expect(hypervolume(all.toReversed())).toBeCloseTo(hypervolume(all), 12);
      }),
    );
  });
});
