// @module-tag verify
/** Every loss and every term of it in whole runs on the engine. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentStep, Step } from '@drmas/engine/events';
import { mean } from '@drmas/engine/math';
import { lora } from '@drmas/engine/model';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
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

describe('a run', () => {
  const root = temporaryRoot();

  /** One step on policy, so that every ratio is 1. A test that needs more overrides this. */
  const changes = {
    training: { steps: 1, tasksPerStep: 2, groupSize: 4 },
    evaluation: { every: 1, tasks: 1, samples: 1 },
  };
  /** Two steps of two mini-batches each. The first mini-batch is on policy. */
  const twice = [
    ...['training.steps=2', 'policies.solver.miniBatches=2', 'policies.verifier.miniBatches=2'],
    'policies.solver.optimizer.learningRate=0.1', // far enough for ratios to be clipped
  ];

  async function stepsOf(overrides: readonly string[]): Promise<Step[]> {
    const run = await trainTiny(root, tinyRecipe(changes, overrides));
    return (await run.events()).filter((event) => event.type === 'step');
  }
  const ofAgent = (steps: readonly Step[], agent: string): AgentStep[] =>
    steps.flatMap(({ agents }) => agents[agent] ?? []);
  /** A metric that the loss itself declares. */
  const metricOf = (step: AgentStep | undefined, name: string) =>
    (step as unknown as Readonly<Record<string, unknown>>)?.[name];
  const gradients = (steps: readonly Step[]) => ofAgent(steps, 'solver').map(({ gradientNorm }) => gradientNorm);
  const lossOf = (type: string) =>
    // GSPO has no choice: it averages the tokens of a sequence, then the sequences.
    `policies.solver.loss=${JSON.stringify({ type, ...(type === 'gspo' ? {} : { aggregate: 'seq-mean-token-mean' }) })}`;

  let onPolicy: Step[];
  let offPolicy: Step[];
  beforeAll(async () => {
    onPolicy = await stepsOf([lossOf('ppo-clip')]);
    offPolicy = await stepsOf([...twice, lossOf('ppo-clip')]);
    expect(gradients(onPolicy)[0]).toBeGreaterThan(0);
  });

  it.each(['turn-ppo', 's-ppo', 'st-ppo', 'cispo', 'gspo'])(
    'has the gradient of ppo-clip on policy and another one off it: %s',
    async (type) => {
      expect(gradients(await stepsOf([lossOf(type)]))).toEqual(gradients(onPolicy));
      const steps = await stepsOf([...twice, lossOf(type)]);
      expect(steps).toHaveLength(2);
      expect(gradients(steps)[0]).not.toBe(gradients(offPolicy)[0]);
      for (const each of ofAgent(steps, 'solver')) {
        expect(each.gradientNorm).toBeGreaterThan(0);
        expect('clippingBias' in each).toBe(type === 's-ppo' || type === 'st-ppo');
      }
      // The other policy learns by its loss as before.
      expect(ofAgent(steps, 'verifier')[0]).toEqual(ofAgent(offPolicy, 'verifier')[0]);
    },
  );

  it('has a quarter of beta of it with kto, and measures from the KL off policy', async () => {
    const loss = 'policies.solver.loss={"type":"kto","beta":0.5}';
    const summed = 'policies.solver.loss={"type":"ppo-clip","aggregate":"seq-mean-token-sum"}';
    const [of, plain] = [await stepsOf([loss]), await stepsOf([summed])].map(gradients);
    expect(of?.[0]).toBeCloseTo((0.5 / 4) * (plain?.[0] as number), 4);
    const [first, second] = ofAgent(await stepsOf([...twice, loss]), 'solver');
    for (const each of [first, second]) expect(metricOf(each, 'klBaseline')).toBeGreaterThan(0); // the second update
    expect(ofAgent(onPolicy, 'solver')[0]).not.toHaveProperty('klBaseline');
  });

  it('learns by the cross-entropy of the episodes that rejection accepts', async () => {
    const steps = await stepsOf([...twice, 'loss.type=cross-entropy', 'advantage={"type":"rejection","keep":"best"}']);
    for (const each of [...ofAgent(steps, 'solver'), ...ofAgent(steps, 'verifier')]) {
      expect(each.loss).toBeGreaterThan(0);
      expect(each.maxAbsAdvantage).toBe(1);
    }
  });

  it('finds an importance of exactly 1 in what its engine wrote', async () => {
    const [plain, corrected] = [await stepsOf(twice), await stepsOf([...twice, 'loss.importanceCorrection={"cap":1}'])];
    for (const agent of ['solver', 'verifier']) {
      for (const each of ofAgent(corrected, agent))
        expect(each).toMatchObject({ importanceWeight: 1, importanceBeyond: 0 });
      const numbers = (steps: readonly Step[]) =>
        ofAgent(steps, agent).map(({ loss, gradientNorm }) => [loss, gradientNorm]);
      expect(numbers(corrected)).toEqual(numbers(plain));
    }
  });

  it('takes the bonus for entropy off the loss', async () => {
    const rewarded = await stepsOf([...twice, lossOf('ppo-clip'), 'policies.solver.entropyCoefficient=10']);
    const entropies = (steps: readonly Step[]) => ofAgent(steps, 'solver').map(({ entropy }) => entropy);
    expect(ofAgent(rewarded, 'solver')[0]?.loss).toBeLessThan((ofAgent(offPolicy, 'solver')[0]?.loss ?? 0) - 1);
    expect(entropies(rewarded)[1]).toBeGreaterThan(entropies(offPolicy)[1] ?? Number.NaN);
    expect(ofAgent(rewarded, 'verifier')[0]).toEqual(ofAgent(offPolicy, 'verifier')[0]);
  });
});

// Runs whose estimator keeps a running mean from step to step.

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
      const { rewardMean = Number.NaN } = agents[name] as (typeof agents)[string];
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
  const rewards = steps.map(({ reward }) => reward?.mean ?? Number.NaN);
  expect(mean(rewards.slice(0, 4))).toBeLessThan(0.1);
  expect(mean(rewards.slice(-4))).toBeGreaterThan(0.7);
});

const whole = tinyModel;
const advantage = { type: 'gae', lambda: 0.95 } as const;
const recipeOf = (changes: Partial<RecipeInput> = {}, overrides: readonly string[] = []) =>
  tinyRecipe({ advantage, ...changes }, overrides);

describe('a run with critics', () => {
  it.each(['turn', 'episode'] as const)(
    'earns more as it goes, and its critics come to expect that: a %s',
    async (across) => {
      const quick = { optimizer: { learningRate: 3e-2 }, critic: { optimizer: { learningRate: 3e-2 } } };
      const recipe = recipeOf({ policies: { solver: quick, verifier: quick } }, [
        'training.steps=30',
        'training.tasksPerStep=4',
        'evaluation.every=100',
        'training.checkpointEvery=100',
        `advantage.across=${across}`,
      ]);
      const steps = await stepsOf(await trainTiny(root, recipe));
      const reward = (part: readonly Step[]) => mean(part.map(({ reward }) => reward?.mean ?? Number.NaN));
      expect(reward(steps.slice(-5))).toBeGreaterThan(reward(steps.slice(0, 5)) + 0.3);
      const last = steps.at(-1)?.policies.solver?.critic;
      expect(last?.loss).toBeLessThan(0.02); // the squared error of returns near 0.8
      expect(steps[0]?.policies.solver?.critic?.explainedVariance).toBeCloseTo(0, 12); // all values are 0 at first
    },
  );

  it.each([
    ['of whole models', whole, { optimizer: { type: 'adamw' } }],
    [
      'of adapters, with SGD and mini-batches',
      lora(whole, { rank: 2 }),
      { optimizer: { type: 'sgd', momentum: 0.9 }, miniBatches: 2, epochs: 2 },
    ],
  ] as const)('goes on from a checkpoint as if never interrupted: %s', async (_, model, critic) => {
    const recipe = recipeOf({ model, policies: { solver: { critic }, verifier: {} } } as Partial<RecipeInput>);
    const [uninterrupted, resumed] = [await trainTiny(root, recipe), await resumedTiny(root, recipe, 2)];
    expect(await eventsOf(resumed)).toEqual(await eventsOf(uninterrupted));
    const files = await filesOf(uninterrupted);
    expect(await filesOf(resumed)).toEqual(files);
    const critics = Object.keys(files).filter((file) => file.includes('step-000004/solver.critic/'));
    expect(critics.some((file) => file.endsWith('value_head.safetensors'))).toBe(true);
  });

  it('may let its critics learn first', async () => {
    const falling = { warmupSteps: 1, schedule: { type: 'linear', finalFraction: 0 } } as const;
    const policies = { solver: { critic: { aheadSteps: 2 }, ...falling }, verifier: falling };
    const steps = await stepsOf(await trainTiny(root, recipeOf({ policies })));
    expect(steps.map(({ policies }) => (policies.solver?.gradientNorm ?? 0) > 0)).toEqual([false, false, true, true]);
    expect(steps.map(({ policies }) => (policies.verifier?.gradientNorm ?? 0) > 0)).toEqual([true, true, true, true]);
    for (const { policies } of steps) expect(policies.solver?.critic?.gradientNorm).toBeGreaterThan(0);
    // The rate rises from its first update on, not from the run's, and has fallen at the run's end.
    const ratesOf = (name: string) => steps.map(({ policies }) => policies[name]?.learningRate as number);
    const full = ratesOf('verifier')[0] as number;
    expect(ratesOf('solver').slice(2)).toEqual([full, 0]);
    expect(ratesOf('verifier')).toEqual(
      [full, full * (2 / 3), full * (1 / 3), 0].map((rate) => expect.closeTo(rate, 12)),
    );
  });

  it('has none where the estimator needs no values', async () => {
    const run = await trainTiny(root, recipeOf({ advantage: { type: 'drmas' } }, ['training.steps=1']));
    expect((await stepsOf(run))[0]?.policies.solver).not.toHaveProperty('critic');
    expect(tinyRecipe().policies.solver).not.toHaveProperty('critic');
    expect(recipeOf().policies.solver?.critic).toMatchObject({ optimizer: { learningRate: 1e-3 }, clip: 0.5 });
  });
});
