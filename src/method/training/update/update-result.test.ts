import { expect, it } from 'vitest';
import { outcomeOf } from './update-result.js';

it('calls an update dropped if a gradient of it was not a number, whatever else was skipped', () => {
  const [applied, skipped, dropped] = [
    { applied: true, norm: 1 },
    { applied: false, norm: 9, why: 'above-limit' },
    { applied: false, norm: Number.NaN, why: 'not-finite' },
  ] as unknown as Parameters<typeof outcomeOf>[0];
  const outcomes = [[applied], [applied, skipped], [skipped, dropped], [applied, dropped]];
  expect(outcomes.map((steps) => outcomeOf(steps as never))).toEqual(['applied', 'skipped', 'dropped', 'dropped']);
});
