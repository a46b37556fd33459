import { describe, expect, it } from 'vitest';
import { PEAK } from './measure/peak.js';
import { amount, table } from './report.js';
import { peerRatios, rowsOf, threadRatios } from './results.js';

const series = (name: string, threads: number, rates: readonly number[], clean = true) => ({
  name,
  threads,
  unit: 'tok',
  repetitions: rates.map((rate) => ({
    amount: rate,
    seconds: 1,
    rate,
    ownCores: threads,
    otherCores: clean ? 0 : 1,
    clean,
  })),
});

const rows = rowsOf(
  'train',
  'tiny',
  [
    series('drmas', 1, [100]),
    series('drmas', 2, [180, 190, 200]),
    series('PyTorch, eager', 2, [70]),
    series('PyTorch, compiled', 1, [95]),
    series('TRL', 1, [19], false),
    series(PEAK, 1, [400, 500]),
    series(PEAK, 2, [1000]),
  ],
  2,
);

describe('results', () => {
  it('share of the best peak of as many threads', () => {
    expect(rows.map(({ peakShare }) => peakShare)).toEqual([0.4, 0.38, 0.14, 0.38, 0.076, undefined, undefined]);
  });

  it('compare our best number of threads with the best variant of a peer', () => {
    const [torch, trl, none] = peerRatios(rows, { PyTorch: 2.3, TRL: undefined, absent: 5 });
    expect(torch).toMatchObject({ value: 2, target: 2.3, clean: true });
    expect(torch?.what).toContain('PyTorch, compiled, 1 thread');
    expect(trl).toMatchObject({ value: 10, clean: false });
    expect(trl).not.toHaveProperty('target');
    expect(none).toBeUndefined();
  });

  it('say what the second thread brings', () => {
    expect(threadRatios(rows, 1.8)).toMatchObject([{ value: 1.9, target: 1.8 }]);
  });
});

describe('report', () => {
  it('writes amounts with three digits and a prefix', () => {
    expect([0.957, 49_912, 1_206_000, 5.771e11].map(amount)).toEqual(['0.957', '49.9k', '1.21M', '577G']);
  });

  it('aligns columns', () => {
    expect(table(['a', 'bb'], [['xyz', '1']], 1)).toBe('a    bb\n---  --\nxyz   1');
  });
});
