import type { PolicyHandle } from '@drmas/engine/contract';
import type { EpisodeGroup, TrainingSample, Turn } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { createRun, temporaryRoot, tinyRecipe } from '../../../../test/support/tiny-run.js';
import { executeRun } from '../../../runs/run/execute/execute-run.js';
import { openEstimator } from '../../advantage/estimators/index.js';
import type { Recipe } from '../../recipe/recipe.js';
import { stepAdvantages } from '../advantages/advantages.js';
import type { Learner } from '../run/learner.js';
import type { TrainingRun } from '../run/run-state.js';
import { measureInflation } from './measured-inflation.js';

const root = temporaryRoot();
const drmas = { type: 'drmas' } as const;

type Measured = Pick<TrainingRun, 'seed' | 'training' | 'estimator' | 'learners'>;

/** A group in which the checker is called only in the episodes that go badly, so it has its own mean. */
function group(norm: (agent: string, sample: number) => number): {
  groups: EpisodeGroup[];
  run: Measured;
} {
  const norms = new Map<number, number>();
  const turn = (agent: string, sample: number, at: number): Turn => {
    const id = norms.size;
    norms.set(id, norm(agent, sample));
    return {
      agent,
      policy: agent,
      turn: at,
      call: 0,
      messages: [],
      prompt: [id],
      response: [0],
      logprobs: [0],
      temperature: 1,
      penalty: 0,
      text: '',
    } as unknown as Turn;
  };
  const rewards = [1, 1, 0.5, 0];
  const episodes = rewards.map((team, sample) => ({
    task: { id: 'a', data: {} },
    sample,
    turns: [turn('writer', sample, 0), ...(team < 1 ? [turn('checker', sample, 1)] : [])],
    outcome: undefined,
    score: { team, agents: {}, parts: {} },
  }));
  const policy = {
    forwardBackward: async ([sample]: readonly TrainingSample[]) => ({
      gradientNorm: norms.get(sample?.tokens[0] ?? -1),
    }),
    discardGradient: async () => {},
  } as unknown as PolicyHandle;
  const training = { measureInflation: 2 } as Recipe['training'];
  const learners = ['writer', 'checker'].map((name) => ({ name, handle: policy, agents: { [name]: {} } }) as Learner);
  return {
    groups: [{ task: { id: 'a', data: {} }, episodes }],
    run: { seed: 1, training, estimator: openEstimator(drmas), learners },
  };
}

describe('measured inflation', () => {
  it('equals the prediction of the lemma if gradients do not depend on rewards', async () => {
    const { groups, run } = group(() => 3);
    const advantages = stepAdvantages({ estimator: openEstimator(drmas), agents: {} }, groups);
    const measured = await measureInflation(run, 1, advantages);
    // mu = 0.625, sigma^2 = 0.6875 / 4; the checker: mu_k = 0.25, sigma_k^2 = 0.25^2.
    expect(measured.writer).toBeCloseTo(1, 12);
    expect(measured.checker).toBeCloseTo((0.25 ** 2 + (0.25 - 0.625) ** 2) / (0.6875 / 4), 12);
    expect(measured.checker).toBeCloseTo(advantages.inflation.checker as number, 12);
  });

  it('exceeds the prediction by the covariance of gradients and scores', async () => {
    const { groups, run } = group((agent, sample) => (agent === 'checker' && sample === 3 ? 10 : 1));
    const advantages = stepAdvantages({ estimator: openEstimator(drmas), agents: {} }, groups);
    const measured = await measureInflation(run, 1, advantages);
    const sigma2 = 0.6875 / 4;
    const [scores, gradients] = [[0.125 ** 2 / sigma2, 0.625 ** 2 / sigma2] as const, [1, 100] as const];
    const [meanScore, meanGradient] = [(scores[0] + scores[1]) / 2, 50.5];
    const covariance =
      ((scores[0] - meanScore) * (gradients[0] - meanGradient) +
        (scores[1] - meanScore) * (gradients[1] - meanGradient)) /
      2;
    expect(advantages.inflation.checker).toBeCloseTo(meanScore, 12);
    expect((measured.checker as number) - meanScore).toBeCloseTo(covariance / meanGradient, 12);
  });

  it('is measured every N steps, and not at all by default', async () => {
    const { groups, run } = group(() => 1);
    const advantages = stepAdvantages({ estimator: openEstimator(drmas), agents: {} }, groups);
    expect(await measureInflation(run, 2, advantages)).toEqual({});
    expect(Object.keys(await measureInflation(run, 3, advantages)).sort()).toEqual(['checker', 'writer']);
    const never = { ...run, training: { ...run.training, measureInflation: 0 } };
    expect(await measureInflation(never, 1, advantages)).toEqual({});
  });

  it('does not change the run', async () => {
    const [plain, watched] = await Promise.all(
      ['0', '1'].map(async (every) => {
        const recipe = tinyRecipe({}, [`training.measureInflation=${every}`]);
        const run = await createRun(root, recipe);
        await executeRun(recipe, run, nodeHost({ threads: 1 }));
        return (await run.events()).flatMap((event) => (event.type === 'step' ? [event] : []));
      }),
    );
    expect(
      watched?.some(({ agents }) => Object.values(agents).some(({ inflation }) => inflation.measured !== undefined)),
    ).toBe(true);
    const timeless = (steps: typeof plain) =>
      steps?.map(({ time: _, seconds: __, phaseSeconds: ___, agents, ...step }) => ({
        ...step,
        agents: Object.fromEntries(
          Object.entries(agents).map(([name, { inflation: ____, ...agent }]) => [name, agent]),
        ),
      }));
    expect(timeless(watched)).toEqual(timeless(plain));
  });
});
