import { expect, it } from 'vitest';
import { sampleOf } from '../../../../test/support/samples.js';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import type { Learner } from '../run/learner.js';
import { objectiveOptions } from './policy-objective.js';

const batch = [sampleOf([1, 2, 3], [1, 1, 1]), sampleOf([1], [0], { agent: 'verifier' })];
const normalizersOf = (aggregate: string) => {
  const { loss, policies, agents } = tinyRecipe({}, [
    `loss.aggregate=${aggregate}`,
    'agents.solver.sampling.maxTokens=7',
    'agents.verifier.sampling.maxTokens=5',
  ]);
  const settings = policies.solver;
  return ['solver', 'verifier'].map(
    (agent) => objectiveOptions({ loss, settings, agents } as Learner, batch, agent).normalizer,
  );
};

it('divides by the whole mini-batch, and with seq-mean-token-sum-norm by the longest response that each agent may give', () => {
  expect(normalizersOf('token-mean')).toEqual([4, 4]);
  expect(normalizersOf('seq-mean-token-sum')).toEqual([2, 2]);
  expect(normalizersOf('seq-mean-token-sum-norm')).toEqual([2 * 7, 2 * 5]);
});
