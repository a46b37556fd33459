// @module-tag verify
import { join } from 'node:path';
import { lora } from '@drmas/engine/model';
import { nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { planRun } from '../../src/runs/studies/plan/dry-run.js';
import { openAgentModels } from '../../src/serve/models/open-agent-models.js';
import { expectFirstRatios } from '../support/expectations.js';
import {
  eventsOf,
  filesOf,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();

/** Two steps, with a reference and a critic for each policy in bfloat16. */
const recipeOf = (changes: Partial<RecipeInput>, overrides: readonly string[]) =>
  tinyRecipe({ training: { steps: 2, tasksPerStep: 2, groupSize: 4, checkpointEvery: 1 }, ...changes }, [
    'policies.solver.kl={"coefficient":0.1}',
    ...overrides,
  ]);
const coarse = ['solver', 'verifier'].map((policy) => `policies.${policy}.precision=bfloat16`);

describe.each([
  ['whole models', {}],
  ['adapters on one base', { model: lora(tinyModel, { rank: 2 }) }],
])('products in bfloat16: %s', (_, changes) => {
  it('play and train with the same log-probs, repeat at any number of threads and go on where they ended', async () => {
    const recipe = recipeOf(changes, coarse);
    const run = await trainTiny(root, recipe);
    const steps = await stepsOf(run);
    for (const { agents } of steps) for (const agent of Object.values(agents)) expectFirstRatios(agent);
    expect(steps[0]?.agents.solver?.referenceKl).toBe(0);
    expect(steps[0]?.agents.solver?.gradientNorm).toBeGreaterThan(0);
    const files = await filesOf(run);
    expect(await filesOf(await trainTiny(root, recipe, { threads: 2 }))).toEqual(files);
    const resumed = await resumedTiny(root, recipe, 1);
    expect(await filesOf(resumed)).toEqual(files);
    expect(await filesOf(await trainTiny(root, recipeOf(changes, [])))).not.toEqual(files);
  });
});

describe('a policy in bfloat16', () => {
  it('stands beside one in float32, on one base too, and has a critic', async () => {
    for (const changes of [{}, { model: lora(tinyModel, { rank: 2 }) }]) {
      const recipe = recipeOf(changes, [coarse[0] as string, 'advantage.type=gae']);
      const run = await trainTiny(root, recipe);
      for (const { agents } of await stepsOf(run)) for (const agent of Object.values(agents)) expectFirstRatios(agent);
      expect((await eventsOf(run)).some(({ type }) => type === 'checkpoint')).toBe(true);
    }
  });

  it('plays in its precision after the run', async () => {
    const run = await trainTiny(root, recipeOf({}, coarse));
    const logprobs = async (from: string) => {
      const opened = await openAgentModels({ from }, nodeHost({ threads: 1 }));
      const model = opened.agentModels.values().next().value?.model;
      const sampling = { temperature: 1, topK: 0, topP: 1, maxTokens: 5, stopTokens: [] };
      const generation = await model?.generate({ prompt: [1, 2, 3], ...sampling, key: [1, 2] });
      await opened.dispose();
      return generation?.logprobs;
    };
    const exported = join(run.path, 'checkpoints', 'step-000002', 'solver');
    // A model without a run has no precision of its own, so it is computed in float32.
    expect(await logprobs(run.path)).not.toEqual(await logprobs(exported));
  });

  it('takes less memory, which the dry run counts', async () => {
    const weights = async (overrides: readonly string[]) => {
      const recipe = recipeOf({}, overrides);
      const { policies } = await planRun(recipe, await prepareTasks(recipe));
      return policies.solver?.memory?.weights ?? 0;
    };
    const ratio = (await weights(coarse)) / (await weights([]));
    expect(ratio).toBeGreaterThan(0.7);
    expect(ratio).toBeLessThan(0.8);
  });
});
