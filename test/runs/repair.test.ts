// @module-tag verify
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RunEvent, Step } from '../../src/base/core/events.js';
import { loadRecipe } from '../../src/method/recipe/load-recipe.js';
import { train } from '../../src/runs/run/api.js';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();

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
      expect(step?.reward.mean).toBeGreaterThan(0.65);
      expect((fixer?.turns ?? 0) / (coder?.turns ?? 1)).toBeGreaterThan(0.2);
      expect((fixer?.turns ?? 0) / (coder?.turns ?? 1)).toBeLessThan(0.35);
      expect(fixer?.rewardMean).toBeLessThan(0.25);
      expect(coder?.inflation.predicted).toBeCloseTo(1, 1);
      expect(fixer?.inflation.predicted).toBeGreaterThan(2);
    });
  });
});
