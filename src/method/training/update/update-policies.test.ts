import { countTokens } from '@drmas/engine/loss';
import type { TrainingSample } from '@drmas/engine/nouns';
import { expect, it } from 'vitest';
import { fakeRun } from '../../../../test/support/fake-run.js';
import { concurrentTeam, temporaryRoot, tinyRecipe } from '../../../../test/support/tiny-run.js';
import { trainTeam } from '../train.js';

const root = temporaryRoot();

it('publishes a policy after its update, while others are still updating', async () => {
  const published: string[] = [];
  let release = () => {};
  const verifierIsOut = new Promise<void>((resolve) => {
    release = resolve;
  });
  const recipe = tinyRecipe({}, ['training.steps=1', 'evaluation.tasks=1']);
  const { run, progress, log } = await fakeRun(root, recipe, ({ index }) => String(index % 10), {
    async optimStep(policy) {
      if (policy === 'solver') await verifierIsOut; // it would wait for ever if the verifier waited for the solver
      return { applied: true, norm: 1 };
    },
    async publish(policy) {
      published.push(policy);
      if (policy === 'verifier') release();
      return 1;
    },
  });
  await trainTeam(run, progress, log);
  expect(published).toEqual(['verifier', 'solver']);
});

it.each([0, 2])(
  'keeps as many versions as rollouts of steps %i before the update may still play',
  async (staleness) => {
    const asked = new Set<number | undefined>();
    const recipe = tinyRecipe({}, ['training.steps=1', 'evaluation.tasks=1', `rollout.staleness=${staleness}`]);
    const { run, progress, log } = await fakeRun(root, recipe, ({ index }) => String(index % 10), {
      async publish(_, versions) {
        asked.add(versions);
        return 1;
      },
    });
    await trainTeam(run, progress, log);
    expect([...asked]).toEqual([staleness + 1]);
  },
);

it('passes the number of tokens in each episode only to a loss that weighs episodes', async () => {
  const episodeMean = ['loss.aggregate=episode-mean', 'policies.verifier.loss={"type":"ppo-clip"}'];
  const mini = ['policies.solver.miniBatches=2', 'training.steps=1', 'evaluation.tasks=1'];
  const { run, progress, log, submitted } = await fakeRun(
    root,
    tinyRecipe({ team: concurrentTeam }, [...episodeMean, ...mini]), // two separate drafts an episode
    ({ policy, index }) =>
      (policy === 'verifier' ? ['<approve>', '<reject>'][index % 2] : '12345'.slice(index % 3)) ?? '',
  );
  await trainTeam(run, progress, log);
  const of = (name: string) => submitted.filter(({ policy }) => policy === name);
  expect(of('verifier').flatMap(({ samples }) => samples.map(({ episodeTokens }) => episodeTokens))).toEqual(
    Array(16).fill(undefined),
  );
  const parts = of('solver').flatMap(({ samples, options }) => ({ samples, normalizer: options.normalizer }));
  const shareOf = (samples: readonly TrainingSample[]) =>
    samples.reduce((sum, { mask, episodeTokens = 0 }) => sum + countTokens(mask) / episodeTokens, 0);
  // Each episode has weight 1 in the whole step, for any division of its turns into mini-batches.
  expect(shareOf(parts.flatMap(({ samples }) => samples))).toBeCloseTo(8, 12);
  expect(parts).toHaveLength(2);
  for (const { samples, normalizer } of parts) expect(normalizer).toBeCloseTo(shareOf(samples), 12);
  const longer = parts.flatMap(({ samples }) => samples).filter((one) => one.episodeTokens !== countTokens(one.mask));
  expect(longer.length).toBeGreaterThan(0);
});
