// @module-tag verify
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RecipeError } from '@drmas/engine/errors';
import { lora, tinyDecoder } from '@drmas/engine/model';
import { nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import type { Recipe } from '../../src/method/recipe/recipe.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { policiesByReference } from '../../src/method/training/signals/open-training.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { checkpointOf } from '../../src/runs/run/request/checkpoint-names.js';
import { requireReferences } from '../../src/runs/run/request/continuation.js';
import {
  createRun,
  eventsOf,
  filesOf,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyDefinition,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();
const whole = tinyModel;
type Policies = NonNullable<RecipeInput['policies']>;

/** Learns fast enough to leave its reference within four steps. */
const quick = { optimizer: { learningRate: 1e-2 }, warmupSteps: 0 };
const held = (kl: Record<string, unknown>): Policies =>
  ({ solver: { ...quick, kl }, verifier: quick }) as unknown as Policies;

/** Without a warm start. */
function cold(changes: Partial<RecipeInput>): Recipe {
  const { warmStart: _, ...input } = tinyDefinition(changes).input;
  return resolveRecipe({ type: 'recipe', input });
}

const distances = async (run: RunDirectory) => (await stepsOf(run)).map(({ agents }) => agents.solver?.referenceKl);

describe('a policy that is held near its beginning', () => {
  it('is at its reference in the first step, and leaves it the less the more that costs', async () => {
    const free = await distances(await trainTiny(root, tinyRecipe({ policies: held({ coefficient: 1e-9 }) })));
    const tight = await distances(await trainTiny(root, tinyRecipe({ policies: held({ coefficient: 10 }) })));
    expect(free[0]).toBe(0);
    expect(tight[0]).toBe(0);
    expect(free.at(-1)).toBeGreaterThan(0);
    expect(tight.at(-1)).toBeLessThan(free.at(-1) as number);
  });

  it('has a reference of its own in the log, and others have none', async () => {
    const run = await trainTiny(root, tinyRecipe({ policies: held({ coefficient: 0.1 }) }));
    for (const { agents, policies } of await stepsOf(run)) {
      expect(policies.solver).toMatchObject({ klCoefficient: 0.1, referenceKl: agents.solver?.referenceKl });
      expect(policies.verifier).not.toHaveProperty('referenceKl');
      expect(agents.verifier).not.toHaveProperty('referenceKl');
    }
    expect(await readdir(join(run.path, 'references'))).toEqual(['solver']);
  });

  it.each([
    ['in the loss', { coefficient: 0.1, controller: { type: 'adaptive', target: 1e-3, horizon: 20 } }, whole],
    ['in the reward', { coefficient: 0.5, in: 'reward', kind: 'k1' }, whole],
    [
      'in the reward, adapted, an adapter',
      { coefficient: 0.5, in: 'reward', controller: { type: 'adaptive', target: 1e-3, horizon: 20 } },
      lora(whole, { rank: 2 }),
    ],
  ])('goes on from a checkpoint as if never interrupted: %s', async (_, kl, model) => {
    const recipe = tinyRecipe({ model, policies: held(kl) });
    const [uninterrupted, resumed] = [await trainTiny(root, recipe), await resumedTiny(root, recipe, 2)];
    expect(await eventsOf(resumed)).toEqual(await eventsOf(uninterrupted));
    expect(await filesOf(resumed)).toEqual(await filesOf(uninterrupted));
    const coefficients = (await stepsOf(resumed)).map(({ policies }) => policies.solver?.klCoefficient);
    expect(new Set(coefficients).size > 1).toBe('controller' in kl);
  });

  it('is refused if a run resumes with it that has stored no reference', async () => {
    const run = await trainTiny(root, tinyRecipe());
    const refused = requireReferences(run, tinyRecipe({ policies: held({ coefficient: 0.1 }) }));
    await expect(refused).rejects.toThrow(
      /references\/solver is missing: .* policies\.solver\.kl\.reference a checkpoint/,
    );
  });

  it('is that of a policy which began alike, if a run resumes with a KL of another one', async () => {
    const kl = { coefficient: 1e-9 };
    const both = { solver: { ...quick, kl }, verifier: { ...quick, kl } } as unknown as Policies;
    const one = { solver: quick, verifier: { ...quick, kl } } as unknown as Policies;
    const other = async (policies: Policies) => {
      const { path } = await trainTiny(root, tinyRecipe({ policies: both }));
      const run = await RunDirectory.open(path);
      const recipe = tinyRecipe({ policies });
      const checkpoint = await checkpointOf(run, '2', 'test');
      await requireReferences(run, recipe);
      await run.rewind(checkpoint);
      await executeRun(recipe, run, nodeHost({ threads: 1 }), { checkpoint });
      return (await stepsOf(run)).map(({ agents }) => agents.verifier?.referenceKl);
    };
    expect(await other(one)).toEqual(await other(both));
  });

  it.each([
    ['warmStart', tinyRecipe, cold],
    ['seed', cold, (changes: Partial<RecipeInput>) => cold({ ...changes, seed: 9 })],
  ])('is refused if a run resumes with another %s', async (name, begins, goesOn) => {
    const policies = held({ coefficient: 0.1 });
    const run = await createRun(root, begins({ policies }));
    await expect(requireReferences(run, goesOn({ policies }))).rejects.toThrow(
      new RegExp(
        `began with another ${name}, and the reference of policies\\.solver\\.kl is the policy at its beginning`,
      ),
    );
    await requireReferences(run, goesOn({})); // no policy is held near its beginning
  });

  it('copies nothing where first weights can be made again', async () => {
    const recipe = cold({ model: lora(whole, { rank: 2 }), policies: held({ coefficient: 0.1 }) });
    const [uninterrupted, resumed] = [await trainTiny(root, recipe), await resumedTiny(root, recipe, 2)];
    expect((await distances(resumed))[0]).toBe(0);
    expect((await distances(resumed)).at(-1)).toBeGreaterThan(0);
    expect(await filesOf(resumed)).toEqual(await filesOf(uninterrupted));
    expect(await readdir(resumed.path)).not.toContain('references');
  });
});

describe('a KL in the reward', () => {
  it('enters the rewards from which advantages are estimated', async () => {
    const advantages = async (coefficient: number) => {
      const kl = { coefficient, in: 'reward', reference: { type: 'policy', policy: 'verifier' } };
      const run = await trainTiny(
        root,
        tinyRecipe({ policies: held(kl) }, ['training.steps=1', 'warmStart.share=policy']),
      );
      const [step] = await stepsOf(run);
      return { largest: step?.agents.solver?.maxAbsAdvantage, rewards: step?.agents.solver?.rewardMean };
    };
    const [little, much] = [await advantages(1e-9), await advantages(1)];
    expect(much.largest).not.toBe(little.largest);
    expect(much.rewards).toBe(little.rewards); // rewards are logged without it
  });
});

describe('a teacher for each role', () => {
  it('is approached without any reward', async () => {
    const longer = await trainTiny(root, tinyRecipe({}, ['warmStart.steps=60', 'training.steps=1']));
    const taught = (name: string) => {
      const path = join(longer.path, 'checkpoints', 'step-000001', name);
      const kl = { coefficient: 1, in: 'advantage', kind: 'k1', reference: { type: 'checkpoint', path } };
      return { ...quick, kl };
    };
    const policies = { solver: taught('solver'), verifier: taught('verifier') } as unknown as Policies;
    const agents = { solver: { rewardWeight: 0 }, verifier: { rewardWeight: 0 } };
    const student = cold({ policies, agents, training: { steps: 12, tasksPerStep: 4, groupSize: 4 } });
    const steps = await stepsOf(await trainTiny(root, student));
    for (const role of ['solver', 'verifier'] as const) {
      const kl = steps.map((step) => step.agents[role]?.referenceKl ?? Number.NaN);
      const mean = (of: readonly number[]) => of.reduce((sum, each) => sum + each, 0) / of.length;
      expect(mean(kl.slice(-3)), `${role}: ${kl.join(' ')}`).toBeLessThan(0.8 * mean(kl.slice(0, 3)));
    }
  });
});

describe('a reference', () => {
  it('is shared by policies that begin alike', () => {
    const both = { solver: { kl: { coefficient: 1 } }, verifier: { kl: { coefficient: 2 } } };
    const sharing = (overrides: readonly string[]) => {
      const recipe = tinyRecipe({ policies: both }, overrides);
      const trained = Object.entries(recipe.policies).map(([name, settings]) => ({
        name,
        settings,
        backendKey: 'here',
      }));
      return policiesByReference(recipe.warmStart?.share, trained).map((policies) => policies.map(({ name }) => name));
    };
    expect(sharing([])).toEqual([['solver', 'verifier']]);
    expect(sharing(['warmStart.share=policy'])).toEqual([['solver'], ['verifier']]);
    expect(
      sharing(['policies.verifier.kl.reference.type=policy', 'policies.verifier.kl.reference.policy=solver']),
    ).toEqual([['solver']]);
  });

  it('may be a checkpoint, or another policy as it is', async () => {
    const trained = await trainTiny(root, tinyRecipe());
    const path = join(trained.path, 'checkpoints', 'step-000004', 'verifier');
    const from = async (reference: Record<string, unknown>) =>
      distances(await trainTiny(root, tinyRecipe({ policies: held({ coefficient: 0.01, reference }) })));
    const toCheckpoint = await from({ type: 'checkpoint', path });
    for (const kl of toCheckpoint) expect(kl).toBeGreaterThan(0);
    const toPolicy = await from({ type: 'policy', policy: 'verifier' });
    expect(toPolicy[0]).toBe(0); // one warm start for both
    expect(toPolicy.at(-1)).toBeGreaterThan(0);
  });

  it('that cannot be is refused with its path', async () => {
    const refused = async (kl: Record<string, unknown>) => {
      const error = await prepareTasks(tinyRecipe({ policies: held({ coefficient: 1, ...kl }) })).catch((e) => e);
      expect(error).toBeInstanceOf(RecipeError);
      return String(error.message);
    };
    const to = (policy: string) => ({ reference: { type: 'policy', policy } });
    expect(await refused(to('solver'))).toMatch(/^policies.solver.kl.reference.policy: .*KL of a policy from itself/);
    expect(await refused(to('verifer'))).toMatch(/no policy 'verifer'; did you mean 'verifier'/);
    const other = tinyDecoder({ ...whole, context: 256, tokenizer: { type: 'bytes' } });
    const bytes = await trainTiny(root, cold({ model: other, training: { steps: 1, tasksPerStep: 1 } }));
    const path = join(bytes.path, 'checkpoints', 'step-000001', 'solver');
    const recipe = tinyRecipe({ policies: held({ coefficient: 1, reference: { type: 'checkpoint', path } }) });
    await expect(trainTiny(root, recipe)).rejects.toThrow(/policies.solver.kl.reference: .*vocabulary of \d+ tokens/);
  });
});
