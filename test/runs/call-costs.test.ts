// @module-tag verify

import type { EvaluationEvent } from '@drmas/engine/events';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
import { summariseRun } from '../../src/runs/analysis/ablation-summary.js';
import { eventsOf, filesOf, resumedTiny, stepsOf, temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const overrides = ['agents.solver.callCost=0.25', 'agents.solver.tokenCost=0.01'];

const evaluationsOf = async (run: RunDirectory) =>
  (await eventsOf(run)).filter((event): event is typeof event & EvaluationEvent => event.type === 'evaluation');

describe('a run in which calls have a price', () => {
  let plain: RunDirectory;
  let priced: RunDirectory;
  beforeAll(async () => {
    plain = await trainTiny(root, tinyRecipe());
    priced = await trainTiny(root, tinyRecipe({}, overrides));
  });

  it('reports it as a part of the reward, and leaves the score as it is', async () => {
    const [before, after] = [(await evaluationsOf(plain))[0], (await evaluationsOf(priced))[0]];
    expect(after?.averageAtK).toBe(before?.averageAtK);
    expect(after?.parts?.outcome).toBeCloseTo(before?.reward as number, 12);
    const { turns = 0, tokens } = after?.agents.solver ?? {};
    const episodes = (after?.tasks ?? 0) * (after?.samples ?? 0);
    expect(after?.parts?.calls).toBeCloseTo(-(0.25 * turns + 0.01 * (tokens?.written ?? 0)) / episodes, 12);
    expect(after?.reward).toBeCloseTo((after?.parts?.outcome ?? 0) + (after?.parts?.calls ?? 0), 12);
    // The verifier has a reward of its own, which pays nothing.
    expect(after?.agents.verifier?.reward).toBe(before?.agents.verifier?.reward);
  });

  it('trains on the reward minus the costs, and reports both in every step and in an ablation', async () => {
    for (const { reward, parts = {} } of await stepsOf(priced)) {
      expect(parts.calls).toBeLessThan(-0.25);
      expect(reward?.mean).toBeCloseTo((parts.outcome as number) + (parts.calls as number), 12);
    }
    const summary = summariseRun({ name: 'a', variant: 'a', seed: 1 }, await priced.events());
    expect(summary.rewards).toMatchObject({ 'reward: calls': expect.any(Number) });
    expect((await stepsOf(plain))[0]).not.toHaveProperty('parts');
  });

  it('resumes bit for bit', async () => {
    expect(await filesOf(await resumedTiny(root, tinyRecipe({}, overrides), 2))).toEqual(await filesOf(priced));
  });
});
