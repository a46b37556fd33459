// @module-tag verify
/** Whole small runs of every way in which agents can be given to policies. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { TinyDecoderInput } from '@drmas/engine';
import type { Step } from '@drmas/engine/events';
import { lora } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { frozen } from '../../src/method/recipe/frozen.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { digitTeam, eventsOf, filesOf, temporaryRoot, tinyModel, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const model = tinyModel;
const wider: TinyDecoderInput = { ...model, width: 16, feedForward: 20 };

/** The team with a third agent, which writes its own answer. */
const trio = defineTeam({
  name: 'trio',
  task: digitTeam.task,
  agents: { ...digitTeam.agents, critic: agent({ system: '<solver>', sampling: { maxTokens: 4 } }) },
  async play({ task, agents: { solver, verifier, critic } }) {
    const draft = await solver(task.question);
    await verifier(task.question);
    const remark = await critic(task.question);
    return { text: draft.text, remark: remark.text };
  },
  reward: ({ outcome: { text, remark } }) => (text.match(/[0-4]/g) ?? []).length / 6 + (/\d/.test(remark) ? 0.1 : 0),
});

interface Way {
  readonly name: string;
  readonly changes: Partial<RecipeInput>;
  readonly overrides?: readonly string[];
  /** The agents of each policy that trains. */
  readonly policies: Readonly<Record<string, readonly string[]>>;
}

const ownWarmStart = ['warmStart.share=policy'];
const ways: Way[] = [
  {
    name: 'separate',
    changes: { assign: 'separate' },
    policies: { solver: ['solver'], verifier: ['verifier'] },
  },
  {
    name: 'shared, told apart by their prompts',
    changes: { assign: 'shared' },
    policies: { shared: ['solver', 'verifier'] },
  },
  {
    name: 'mixed',
    changes: { team: trio, assign: { solver: 'big', verifier: 'small', critic: 'big' } as never },
    policies: { big: ['critic', 'solver'], small: ['verifier'] },
  },
  {
    name: 'of different sizes',
    changes: { assign: { solver: 'big', verifier: 'small' }, policies: { big: { model: wider } } as never },
    overrides: ownWarmStart,
    policies: { big: ['solver'], small: ['verifier'] },
  },
  {
    name: 'adapters on one base',
    changes: { model: lora(model, { rank: 2 }) },
    policies: { solver: ['solver'], verifier: ['verifier'] },
  },
  {
    name: 'an adapter beside a whole model',
    changes: { policies: { solver: { model: lora(model, { rank: 2 }) } } as never },
    overrides: ownWarmStart,
    policies: { solver: ['solver'], verifier: ['verifier'] },
  },
  {
    name: 'one frozen',
    changes: { assign: { solver: 'one', verifier: frozen(model) } },
    policies: { one: ['solver'] },
  },
  {
    name: 'shared and frozen, of different sizes',
    changes: { team: trio, assign: { solver: 'one', critic: 'one', verifier: frozen(wider) } as never },
    overrides: ownWarmStart,
    policies: { one: ['critic', 'solver'] },
  },
];

describe('agents and policies', () => {
  it.each(ways)('$name', async ({ changes, overrides = [], policies }) => {
    const recipe = tinyRecipe({ ...changes, training: { steps: 2, tasksPerStep: 2, groupSize: 4 } }, overrides);
    const run = await trainTiny(root, recipe, { threads: 1 });
    const [events, files] = [await eventsOf(run), await filesOf(run)];
    expect(events.at(-1)).toMatchObject({ reason: 'completed', steps: 2 });
    const steps = events.filter((event): event is Step => event.type === 'step');
    const trained = Object.values(policies).flat().sort();
    for (const step of steps) {
      expect(Object.keys(step.policies).sort()).toEqual(Object.keys(policies).sort());
      for (const [name, measured] of Object.entries(step.agents)) {
        expect(measured.frozen, name).toBe(trained.includes(name) ? undefined : true);
        expect(measured.maxRatioDeviation, name).toBe(trained.includes(name) ? 0 : undefined);
      }
    }
    const learnt = steps.map(({ agents }) => trained.map((name) => agents[name]?.gradientNorm ?? 0));
    expect(Math.max(...learnt.flat())).toBeGreaterThan(0);
    const checkpoints = await readdir(join(run.path, 'checkpoints', 'step-000002'), { withFileTypes: true });
    const optimised = Object.keys(files).filter((name) => name.endsWith('optimizer.safetensors'));
    expect(optimised.map((name) => name.split('/').at(-2)).sort()).toEqual(Object.keys(policies).sort());
    expect(checkpoints.filter((entry) => entry.isDirectory()).length).toBeGreaterThanOrEqual(optimised.length);
    const again = await trainTiny(root, recipe, { threads: 2 });
    expect(await eventsOf(again)).toEqual(events);
    expect(await filesOf(again)).toEqual(files);
  });
});

describe('the weight of an agent', () => {
  const norms = async (...overrides: string[]) => {
    const recipe = tinyRecipe({ assign: 'shared', training: { steps: 1, tasksPerStep: 2, groupSize: 4 } }, overrides);
    const step = (await eventsOf(await trainTiny(root, recipe))).find((event): event is Step => event.type === 'step');
    return [step?.agents.solver?.gradientNorm ?? 0, step?.agents.verifier?.gradientNorm ?? 0] as const;
  };

  it('scales its part of the gradient of a policy that it shares', async () => {
    const [solver, verifier] = await norms();
    expect(Math.min(solver, verifier)).toBeGreaterThan(0);
    const [louder, same] = await norms('agents.solver.rewardWeight=4');
    expect(louder / solver).toBeCloseTo(4, 4);
    expect(same).toBe(verifier);
    expect(await norms('agents.solver.rewardWeight=0')).toEqual([0, verifier]);
  });
});

describe('a warm start of each policy on its own', () => {
  it('is refused where the tasks show nothing of its agents', async () => {
    const recipe = tinyRecipe(
      { team: trio, assign: { solver: 'a', verifier: 'a', critic: 'b' } as never },
      ownWarmStart,
    );
    await expect(prepareTasks(recipe)).rejects.toThrow(
      /^warmStart\.share: .* no traces for critic, so 'b' has no demonstrations/,
    );
    const judged = tinyRecipe(
      { team: trio, assign: { solver: 'a', verifier: 'a', critic: frozen(model) } as never },
      ownWarmStart,
    );
    await expect(prepareTasks(judged)).rejects.toThrow(/no traces for critic, so 'critic' has no demonstrations/);
    await expect(prepareTasks(tinyRecipe({ team: trio }))).resolves.toBeDefined();
  });
});
