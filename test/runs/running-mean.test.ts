// @module-tag verify
/** Runs whose estimator keeps a running mean from step to step. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { mean } from '../../src/base/core/statistics.js';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
import { eventsOf, filesOf, resumedTiny, stepsOf, temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();

async function stateOf(run: RunDirectory): Promise<Record<string, unknown>> {
  const checkpoint = await run.latestCheckpoint();
  return JSON.parse(await readFile(join(checkpoint?.directory ?? '', 'state.json'), 'utf8'));
}

it('go on bit for bit: the checkpoint holds the mean of every agent', async () => {
  const recipe = tinyRecipe({}, ['advantage.type=ema', 'advantage.decay=0.5']);
  const whole = await trainTiny(root, recipe);
  const resumed = await resumedTiny(root, recipe, 2);
  expect(await eventsOf(resumed)).toEqual(await eventsOf(whole));
  expect(await filesOf(resumed)).toEqual(await filesOf(whole));
  const { estimator } = await stateOf(whole);
  const expected = { solver: 0, verifier: 0 };
  (await stepsOf(whole)).forEach(({ agents }, step) => {
    for (const name of ['solver', 'verifier'] as const) {
      const { rewardMean } = agents[name] as (typeof agents)[string];
      expected[name] = step === 0 ? rewardMean : 0.5 * expected[name] + 0.5 * rewardMean;
    }
  });
  const { solver, verifier } = estimator as typeof expected;
  expect(solver).toBeCloseTo(expected.solver, 12);
  expect(verifier).toBeCloseTo(expected.verifier, 12);
});

it('leave nothing in the checkpoint of a run whose estimator looks at one step alone', async () => {
  expect(await stateOf(await trainTiny(root, tinyRecipe()))).not.toHaveProperty('estimator');
});

it('learn without groups: from a twentieth of the reward that there is to most of it', async () => {
  const changes = {
    training: { steps: 24, tasksPerStep: 16, groupSize: 1, checkpointEvery: 24 },
    evaluation: { every: 24, tasks: 1, samples: 1 },
  };
  const faster = ['solver', 'verifier'].map((policy) => `policies.${policy}.optimizer.learningRate=0.05`);
  const steps = await stepsOf(await trainTiny(root, tinyRecipe(changes, ['advantage.type=ema', ...faster])));
  const rewards = steps.map(({ reward }) => reward.mean);
  expect(mean(rewards.slice(0, 4))).toBeLessThan(0.1);
  expect(mean(rewards.slice(-4))).toBeGreaterThan(0.7);
});
