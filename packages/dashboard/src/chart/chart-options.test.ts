import { expect, it } from 'vitest';
import type { Line } from './chart-data.js';
import { extentOf } from './chart-data.js';
import { shapeOf, tickText } from './chart-options.js';

const line = (count: number, y = (i: number) => i): Line => ({
  name: 'agent',
  colour: 0,
  dots: true,
  points: Array.from({ length: count }, (_, i) => ({ x: i, y: y(i) })),
});

it('a chart looks different once a line has too many points for dots, or needs a logarithmic axis', () => {
  const style = { unit: 'number', logarithmic: true } as const;
  expect(shapeOf([line(5)], style)).toBe(shapeOf([line(40)], style));
  expect(shapeOf([line(40)], style)).not.toBe(shapeOf([line(41)], style));
  expect(shapeOf([line(20)], style)).not.toBe(shapeOf([line(20, (i) => 10 ** i)], style));
  expect(shapeOf([line(20)], { unit: 'number' })).toBe(shapeOf([line(20, (i) => 10 ** i)], { unit: 'number' }));
});

it('ticks differ from their neighbours, and are short enough for the place beside an axis', () => {
  const ticks = (unit: 'number' | 'share', first: number, increment: number) =>
    [0, 1, 2].map((i) => tickText(unit, first + i * increment, increment));
  expect(ticks('share', 0, 0.25)).toEqual(['0 %', '25 %', '50 %']);
  expect(ticks('share', 0.025, 0.025)).toEqual(['2.5 %', '5.0 %', '7.5 %']);
  expect(ticks('share', 0.002, 0.002)).toEqual(['0.2 %', '0.4 %', '0.6 %']);
  expect(ticks('number', 0, 0.25)).toEqual(['0', '0.25', '0.5']);
  expect(ticks('number', 1234, 0.5)).toEqual(['1234', '1234.5', '1235']);
  expect(ticks('number', 2e-10, 2e-10)).toEqual(['2e-10', '4e-10', '6e-10']);
  expect(ticks('number', -3e7, 1e7)).toEqual(['-3e+7', '-2e+7', '-1e+7']);
  expect([0.001, 1, 1e5, 1e9].map((value) => tickText('number', value, 0))).toEqual(['0.001', '1', '100000', '1e+9']);
});

it('a few large values leave the usual ones on a logarithmic axis, and rounding errors stay below it', () => {
  const low = (values: readonly number[]) => extentOf([line(values.length, (i) => values[i] ?? 0)], [], true).low;
  const usual = Array.from({ length: 30 }, (_, i) => 0.1 + i / 100);
  expect(low([...usual, 1e5])).toBe(0.1);
  expect(low([...usual, ...usual.map(() => 1e-12)])).toBeCloseTo(0.37e-4, 5);
});
