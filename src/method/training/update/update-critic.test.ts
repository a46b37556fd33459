import type { Turn } from '@drmas/engine/nouns';
import { expect, it } from 'vitest';
import type { TurnAdvantage } from '../advantages/advantages.js';
import type { TurnSignals } from '../run/signal.js';
import { explainedVariance } from './update-critic.js';

it.each([
  ['each return', [1, 2, 3, 6], 1],
  ['the mean of the returns', [3, 3, 3, 3], 0],
  ['each return and 5 more', [6, 7, 8, 11], 1],
  ['half of each return', [0.5, 1, 1.5, 3], 0.75],
  ['each return with the other sign', [-1, -2, -3, -6], -3],
])('explains the variance that it should for values of %s', (_, values, expected) => {
  const turns = [
    { turn: {} as Turn, returns: [1, 2] },
    { turn: {} as Turn, returns: [3, 6] },
  ] as unknown as TurnAdvantage[];
  const signals = new Map(
    turns.map(({ turn }, i): [Turn, TurnSignals] => [
      turn,
      { values: Float32Array.from(values.slice(2 * i, 2 * i + 2)) },
    ]),
  );
  expect(explainedVariance(turns, signals)).toBeCloseTo(expected, 12);
  const equal = turns.map((each) => ({ ...each, returns: [2, 2] }));
  expect(explainedVariance(equal, signals)).toBeUndefined();
});
