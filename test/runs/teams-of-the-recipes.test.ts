// @module-tag verify
import { join } from 'node:path';
import type { EvaluationEvent, RunEvent, Step } from '@drmas/engine/events';
import { beforeAll, describe, expect, it } from 'vitest';
import { amountOf, listText, orders, orderText } from '../../recipes/shop/world.js';
import { loadRecipe } from '../../src/method/recipe/load-recipe.js';
import { train } from '../../src/runs/run/api.js';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();

const isStep = (event: RunEvent): event is RunEvent & Step => event.type === 'step';
const isEvaluation = (event: RunEvent): event is RunEvent & EvaluationEvent => event.type === 'evaluation';

/** The events of a few steps of a recipe after a short warm start. */
async function trained(recipe: string, name: string, set: readonly string[]): Promise<readonly RunEvent[]> {
  const short = ['training.tasksPerStep=4', 'evaluation.tasks=4', 'evaluation.samples=2', ...set];
  const { events } = await train(recipe, { run: join(root, name), set: short, threads: 1 });
  return events;
}

/** Sums that a small model answers rightly now and then after a second of demonstrations. */
const easy = [
  'tasks.train.operations=[1,1]',
  'tasks.train.warmStartOperations=[1,1]',
  'tasks.train.top=9',
  'tasks.train.demonstrations.worked=0',
  'model.width=16',
  'warmStart.steps=250',
  'warmStart.batch=16',
  'warmStart.learningRate=2e-2',
];

describe('the recipe solo', () => {
  it('is the same run under grpo and drmas, for one agent is called once an episode', async () => {
    const steps = async (type: string) => {
      const set = [...easy, 'training.steps=2', 'training.groupSize=8', `advantage.type=${type}`];
      const events = await trained('solo', `solo-${type}`, set);
      return events
        .filter(isStep)
        .map(({ reward, agents, policies, success }) => ({ reward, agents, policies, success }));
    };
    const drmas = await steps('drmas');
    expect(drmas).toHaveLength(2);
    expect(drmas[0]?.agents.solver?.gradientNorm).toBeGreaterThan(0);
    expect(await steps('grpo')).toEqual(drmas);
  });
});

describe('the recipe shop', () => {
  const play = async (lines: { planner: string[]; executor?: string[]; verifier?: string[] }) => {
    const { input } = (await loadRecipe('shop')).definition;
    const order = [
      { item: 'fig', count: 2 },
      { item: 'pear', count: 7 },
      { item: 'nut', count: 1 },
    ];
    expect(orderText(order)).toBe('2 fig7 pear1 nut');
    const { score, turns } = await playScripted(input.team, { order }, lines);
    return { ...score, agentsOfTurns: turns.map(({ agent }) => agent), ofTurns: turns.map((turn) => turn.stepReward) };
  };

  it('pays each agent for its own work, and the team for all of it', async () => {
    const right = { planner: [' pear fig nut'], executor: ['04', '35', '08'], verifier: ['<complete>'] };
    expect(await play(right)).toMatchObject({
      team: 1,
      agents: { planner: 1, executor: 0, verifier: 1 },
      agentsOfTurns: ['planner', 'executor', 'executor', 'executor', 'verifier'],
      ofTurns: [undefined, 1, 1, 1, undefined],
    });
    expect(await play({ ...right, executor: ['04', '12', '08'] })).toMatchObject({
      team: 0,
      agents: { planner: 1, verifier: 1 },
      ofTurns: [undefined, 1, 0, 1, undefined],
    });
    expect(await play({ ...right, verifier: ['<incomplete>'] })).toMatchObject({ team: 0, agents: { verifier: 0 } });
  });

  it('asks about no article that was not ordered, and about none without a list', async () => {
    const partial = { executor: ['04', '35'], verifier: ['<incomplete>'] };
    const forgotten = await play({ planner: [' fig pear'], ...partial });
    expect(forgotten).toMatchObject({ team: 0, agents: { planner: 2 / 3, verifier: 1 } });
    const extra = await play({ planner: [' fig pear plum'], ...partial });
    expect(extra).toMatchObject({ team: 0, agents: { planner: 1 / 3, verifier: 1 } });
    expect(await play({ planner: ['fig?'] })).toMatchObject({ team: 0, agents: { planner: 0 } });
  });

  it('learns for a few steps on unseen orders', async () => {
    const events = await trained('shop', 'shop', ['warmStart.steps=60', 'training.steps=2']);
    expect(events.filter(isStep).map((event) => Object.keys(event.agents))).toEqual(
      Array(2).fill(['executor', 'planner', 'verifier']),
    );
    expect(Object.keys(events.findLast(isEvaluation)?.metrics ?? {})).toContain('listed');
    const { order } = (await orders().load('test')).at(0).data;
    const amounts = order.map((item) => String(amountOf(item)).padStart(2, '0'));
    const { input } = (await loadRecipe('shop')).definition;
    const perfect = { planner: [listText(order.map(({ item }) => item))], executor: amounts, verifier: ['<complete>'] };
    expect((await playScripted(input.team, { order }, perfect)).score.team).toBe(1);
  });
});

describe('the recipe desk', () => {
  it('calls its specialists in the episodes that go badly, and triage and generalist in all', async () => {
    const set = ['warmStart.steps=150', 'training.steps=1', 'training.tasksPerStep=16', 'evaluation.samples=1'];
    const step = (await trained('desk', 'desk', set)).find(isStep);
    const { triage, generalist, ...specialists } = step?.agents ?? {};
    expect([triage?.turns, generalist?.turns]).toEqual([256, 256]);
    expect(Object.keys(specialists)).toEqual(['camera', 'phone', 'router', 'watch']);
    const called = Object.values(specialists).reduce((sum, { turns }) => sum + turns, 0);
    expect(called / 256).toBeGreaterThan(0.15);
    expect(called / 256).toBeLessThan(0.4);
    expect(step?.metrics?.escalated).toBeCloseTo(called / 256, 12);
    expect(step?.reward?.mean).toBeGreaterThan(0.6);
    for (const { rewardMean, inflation } of Object.values(specialists)) {
      expect(rewardMean).toBeLessThan(0.35);
      expect(inflation.predicted).toBeGreaterThan(1.5);
    }
    expect(triage?.inflation.predicted).toBeCloseTo(1, 1);
  });
});

describe('the recipe repair', () => {
  const play = async (drift: number, lines: { coder: string[]; fixer?: string[] }) => {
    const { input } = (await loadRecipe('repair')).definition;
    const { score, turns } = await playScripted(input.team, { request: 'sort c into f', drift }, lines);
    return { score: score?.team, agents: turns.map(({ agent }) => agent), last: turns.at(-1)?.messages };
  };

  it('calls the fixer after a failure alone, and shows it what failed and why', async () => {
    expect(await play(0, { coder: ['sort c f'] })).toMatchObject({ score: 1, agents: ['coder'] });
    expect(await play(1, { coder: ['order c f'] })).toMatchObject({ score: 1, agents: ['coder'] });
    const drifted = await play(1, { coder: ['sort c f'], fixer: ['order c f'] });
    expect(drifted).toMatchObject({ score: 1, agents: ['coder', 'fixer'] });
    expect(drifted.last?.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      'system: <fixer>',
      'user: sort c into f',
      'assistant: sort c f',
      'user: sort: removed in version 2',
    ]);
    expect(await play(1, { coder: ['sort c f'], fixer: ['clone c f'] })).toMatchObject({ score: 0 });
    expect(await play(0, { coder: ['tac c f'], fixer: ['sort c f'] })).toMatchObject({ score: 1 });
  });

  describe('after a short warm start', () => {
    let step: (RunEvent & Step) | undefined;
    beforeAll(async () => {
      const set = ['warmStart.steps=160', 'training.steps=1', 'evaluation.tasks=1', 'evaluation.samples=1'];
      const { events } = await train('repair', { run: join(root, 'short'), set, threads: 1 });
      step = events.find((event): event is RunEvent & Step => event.type === 'step');
    });

    it('has a team that is usually right, and a fixer that is called in the episodes that go badly', () => {
      const { coder, fixer } = step?.agents ?? {};
      expect(step?.reward?.mean).toBeGreaterThan(0.65);
      expect((fixer?.turns ?? 0) / (coder?.turns ?? 1)).toBeGreaterThan(0.2);
      expect((fixer?.turns ?? 0) / (coder?.turns ?? 1)).toBeLessThan(0.35);
      expect(fixer?.rewardMean).toBeLessThan(0.25);
      expect(coder?.inflation.predicted).toBeCloseTo(1, 1);
      expect(fixer?.inflation.predicted).toBeGreaterThan(2);
    });
  });
});
