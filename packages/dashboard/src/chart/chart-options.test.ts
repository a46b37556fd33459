import { expect, it } from 'vitest';
import type { Line } from './chart-data.js';
import { shapeOf } from './chart-options.js';

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
