import fc from 'fast-check';
import { expect, it } from 'vitest';
import { bandOf } from './band.js';

it('has mean, minimum and maximum at the steps that all runs have', () => {
  const runs = [
    [
      { x: 0, y: 1 },
      { x: 5, y: 4 },
    ],
    [
      { x: 0, y: 3 },
      { x: 5, y: 2 },
      { x: 9, y: 7 },
    ],
    [],
  ];
  expect(bandOf(runs)).toEqual([
    { x: 0, y: 2, low: 1, high: 3 },
    { x: 5, y: 3, low: 2, high: 4 },
  ]);
  expect(bandOf([])).toEqual([]);
});

it('does not depend on the order of the runs, and one run is its own band', () => {
  const number = fc.double({ min: -9, max: 9, noNaN: true }).map((value) => value + 0); // a mean has no -0
  const line = fc.array(number, { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 4 }), (lines) => {
      const runs = lines.map((values) => values.map((y, x) => ({ x, y })));
      const band = bandOf(runs);
      const other = bandOf(runs.toReversed());
      expect(other.map(({ low, high }) => [low, high])).toEqual(band.map(({ low, high }) => [low, high]));
      for (const { y, low, high } of band) expect(y >= low - 1e-9 && y <= high + 1e-9).toBe(true);
      const [first = []] = runs;
      expect(bandOf([first])).toEqual(first.map(({ x, y }) => ({ x, y, low: y, high: y })));
    }),
  );
});
