import { describe, expect, it } from 'vitest';
import { evaluation } from '../../../test/fixtures/run-events.js';
import { sliceLines } from './score-printer.js';

const { type: _, agents: __, seconds: ___, step: ____, split: _____, samples: ______, ...scores } = evaluation(1, 0.5);
const bounds = { passInterval: { low: 0.25, high: 0.75 }, majorityInterval: { low: 0, high: 1 } };
const divided = {
  ...evaluation(1, 0.5),
  slices: { subject: { Algebra: { ...scores, tasks: 7, ...bounds }, [`Geometry ${'x'.repeat(90)}`]: scores } },
};

describe('the parts of an evaluation', () => {
  it('have a line each, with intervals where there is room', () => {
    const [head, algebra, geometry, blank] = sliceLines(divided, 100);
    expect(head).toMatch(/^subject +tasks +avg@4 +pass@4 +maj@4$/);
    expect(algebra).toMatch(
      /^Algebra +7 +50\.0 % +\[47\.0, 53\.0\] +55\.0 % +\[25\.0, 75\.0\] +52\.0 % +\[0\.0, 100\.0\]$/,
    );
    expect(geometry).toMatch(/^Geometry x{14}… +256 +50\.0 %/);
    expect(blank).toBe('');
  });

  it('go without intervals on a narrow screen', () => {
    const lines = sliceLines(divided, 60);
    expect(lines[1]).toMatch(/^Algebra +7 +50\.0 % +55\.0 % +52\.0 %$/);
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
  });

  it('are not there where nothing was divided', () => expect(sliceLines(evaluation(1, 0.5), 60)).toEqual([]));
});
