import { expect, it } from 'vitest';
import { sampledEntropy } from './step-event.js';

const turn = (...logprobs: number[]) => ({ logprobs });

it('is the entropy of all sampled tokens of a step, if each log-prob is known', () => {
  expect(sampledEntropy([turn(-1, -2), turn(), turn(-6)])).toBe(3);
  expect(sampledEntropy([turn(-1), turn(Number.NaN)])).toBeUndefined();
  expect(sampledEntropy([turn()])).toBeUndefined();
});

it('takes more tokens than a list holds', { tags: 'verify' }, () => {
  const long = turn(...new Array<number>(100_000).fill(-0.5));
  expect(sampledEntropy(new Array(1400).fill(long))).toBe(0.5);
});
