import { messageOf } from '@drmas/engine/errors';
import type { RandomStream } from '@drmas/engine/math';
import { expect } from 'vitest';

/**
 * Expects equal arrays of floats, bit for bit but for the sign of zero; `toEqual` on thousands of numbers takes
 * seconds.
 */
export function expectSameBits(actual: Float32Array | undefined, expected: Float32Array | undefined): void {
  expect(actual?.length).toBe(expected?.length);
  const at = actual?.findIndex((value, i) => !Object.is(value + 0, (expected?.[i] as number) + 0)) ?? -1;
  expect({ at, value: actual?.[at] }).toEqual({ at: -1, value: undefined });
}

/**
 * Expects a slope between the difference quotients of its two sides: at a kink these differ, and any slope between them
 * is right.
 */
export function expectBetween(slope: number, sides: readonly [number, number], tolerance: number): void {
  const [low, high] = [Math.min(...sides) - tolerance, Math.max(...sides) + tolerance];
  if (!(slope > low && slope < high))
    expect.fail(`the slope is ${slope}, expected more than ${low}, less than ${high}`);
}

interface Differentiated {
  /** Moved in place, and restored. */
  readonly weights: Float32Array;
  /** As long as `weights`. */
  readonly gradient: Float32Array;
  /** The loss at the weights as they are now. */
  readonly loss: () => Promise<number>;
  /** How far the weights move along a random direction. */
  readonly step: number;
  readonly random: RandomStream;
}

/** Expects the slope of a loss along a random direction, by finite differences, within 0.2 % of the gradient's size. */
export async function expectGradient(
  name: string,
  { weights, gradient, loss, step, random }: Differentiated,
): Promise<void> {
  const direction = Float64Array.from(weights, () => random.normal());
  const before = Float32Array.from(weights);
  const at = (by: number) => {
    for (let i = 0; i < weights.length; i++) weights[i] = (before[i] as number) + by * (direction[i] as number);
    return loss();
  };
  // Richardson's extrapolation removes the cubic term, so that the step can be large against float32 rounding.
  const coarse = ((await at(2 * step)) - (await at(-2 * step))) / (4 * step);
  const fine = ((await at(step)) - (await at(-step))) / (2 * step);
  weights.set(before);
  const along = direction.reduce((sum, d, i) => sum + d * (gradient[i] as number), 0);
  const scale = Math.hypot(...direction) * Math.hypot(...gradient);
  expect(Math.abs((4 * fine - coarse) / 3 - along) / scale, name).toBeLessThan(2e-3);
}

/** The items of each type, for a test of each type: hundreds of tests that draw the same random inputs take long. */
export function byType<T>(items: readonly T[], typeOf: (item: T) => string): { type: string; items: readonly T[] }[] {
  const types = [...new Set(items.map(typeOf))];
  return types.map((type) => ({ type, items: items.filter((item) => typeOf(item) === type) }));
}

/** Checks each item. An error names the item that it belongs to. */
export function inEach<T>(items: readonly T[], check: (item: T) => void): void {
  for (const item of items)
    try {
      check(item);
    } catch (error) {
      const name = JSON.stringify(item, (key, value) => (key === 'declaration' ? undefined : value)); // of pages
      throw new Error(`${name}: ${messageOf(error)}`, { cause: error });
    }
}

/**
 * The sampler and the trainer have the same bits: the ratios that an agent's update measured are 1, if it measured any.
 */
export function expectFirstRatios(agent: { readonly maxRatioDeviation?: number; readonly logprobGap?: number }): void {
  const { maxRatioDeviation = 0, logprobGap = 0 } = agent;
  expect([maxRatioDeviation, logprobGap]).toEqual([0, 0]);
}
