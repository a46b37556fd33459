import { expect, it } from 'vitest';
import { fakeRun } from '../../../test/support/fake-run.js';
import { temporaryRoot, tinyRecipe } from '../../../test/support/tiny-run.js';
import { trainTeam } from '../train.js';

const root = temporaryRoot();

it('publishes a policy that is updated while others still are', async () => {
  const published: string[] = [];
  let release = () => {};
  const verifierIsOut = new Promise<void>((resolve) => {
    release = resolve;
  });
  const recipe = tinyRecipe({}, ['training.steps=1', 'evaluation.tasks=1']);
  const { run, progress, log } = await fakeRun(root, recipe, ({ index }) => String(index % 10), {
    async optimStep(policy) {
      if (policy === 'solver') await verifierIsOut; // for ever, were it to wait for the solver
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
