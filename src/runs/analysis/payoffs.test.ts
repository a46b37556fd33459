import { expect, it } from 'vitest';
import { pairedInterval } from './paired-interval.js';
import { payoffTable } from './payoffs.js';

it('joins the meetings of all steps by version, and gives the interval over tasks', () => {
  const steps = [
    { pools: { past: [{ version: 0, episodes: 8, scores: [1, 0] }] } },
    {},
    {
      pools: {
        past: [
          { version: 0, episodes: 4, scores: [0.5] },
          { version: 20, episodes: 3, scores: [-1] },
        ],
        early: [{ version: 0, episodes: 4, scores: [0.25] }],
      },
    },
  ];
  expect(payoffTable(steps)).toEqual([
    { pool: 'early', version: 0, episodes: 4, tasks: 1, mean: 0.25 },
    { pool: 'past', version: 0, episodes: 12, tasks: 3, ...pairedInterval([1, 0, 0.5]) },
    { pool: 'past', version: 20, episodes: 3, tasks: 1, mean: -1 },
  ]);
  expect(payoffTable([{}])).toEqual([]);
});
