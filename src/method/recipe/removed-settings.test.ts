import { describe, expect, it } from 'vitest';
import { tinyDefinition } from '../../../test/support/tiny-run.js';
import { resolveRecipe } from '../../runs/composition/resolve-recipe.js';
import { withoutRemoved } from './removed-settings.js';

describe('a removed setting', () => {
  it.each([
    ['training.durationWeights.most=5', /^training\.durationWeights: drmas has no such setting any more: no meas/],
    ['sampler={"type":"vllm","url":"http://a","timeoutSeconds":9}', /^sampler\.timeoutSeconds: .* 600 seconds/],
    [
      'policies.solver.sampler={"type":"vllm","url":"http://a","timeoutSeconds":9}',
      /^policies\.solver\.sampler\.timeoutSeconds: /,
    ],
  ])('is refused with its path and the reason: %s', (override, message) => {
    expect(() => resolveRecipe(tinyDefinition(), { overrides: [override] })).toThrow(message);
  });

  it('is ignored in a stored recipe at the value that is fixed now, and stays at any other', () => {
    const sampler = { type: 'vllm', url: 'http://a' };
    const stored = {
      sampler: { ...sampler, timeoutSeconds: 600 },
      policies: { solver: { sampler: { ...sampler, timeoutSeconds: 600 } }, verifier: {} },
      training: { steps: 3 },
    };
    expect(withoutRemoved(stored)).toEqual({
      sampler,
      policies: { solver: { sampler }, verifier: {} },
      training: { steps: 3 },
    });
    expect(stored.sampler.timeoutSeconds).toBe(600);
    const other = { sampler: { ...sampler, timeoutSeconds: 9 }, training: { durationWeights: { most: 10 } } };
    expect(withoutRemoved(other)).toEqual(other);
  });
});
