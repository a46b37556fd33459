/** Failed episodes in the numbers of a run: success, levels, the curriculum's prediction, warnings. */

import { mean } from '@drmas/engine/math';
import { choiceTable } from '@drmas/engine/model';
import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineRecipe, type RecipeInput } from '../../src/method/recipe/define.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { eventsOf, stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const task = z.object({ level: z.enum(['easy', 'hard']) });
type Level = z.output<typeof task>['level'];

/** Plays until the walker stops. On hard tasks `fails` decides about an episode that goes on. */
const walk = (fails: 'loops' | 'throws') =>
  defineTeam({
    name: 'walk',
    task,
    agents: { walker: agent({ parse: oneOf('go', 'stop', 'wait', 'turn'), sampling: { maxTokens: 1 } }) },
    async play({ task: { level }, agents: { walker } }) {
      let { value } = await walker(level);
      if (level === 'hard' && value !== 'stop' && fails === 'throws') throw new Error('the path is closed');
      while (level === 'hard' && value !== 'stop') ({ value } = await walker(level));
      return value;
    },
    reward: () => 1,
  });

const trained = async (fails: 'loops' | 'throws', training: RecipeInput['training'], levels: readonly Level[]) => {
  const recipe = defineRecipe({
    team: walk(fails),
    tasks: {
      name: 'paths',
      load: async () => ({
        name: 'paths',
        size: 32,
        at: (index: number) => ({ id: `${index}`, data: { level: levels[index % levels.length] as Level } }),
      }),
    },
    policies: { walker: { model: choiceTable({ choices: ['go', 'stop', 'wait', 'turn'] }) } },
    training: { steps: 2, tasksPerStep: 8, groupSize: 8, maxTurns: 1, ...training },
    evaluation: { tasks: 1, samples: 1 },
  });
  const run = await trainTiny(root, resolveRecipe(recipe));
  const episodes = async (step: number) => (await readEpisodes(nodeFiles, run.stepEpisodesPath(step))) ?? [];
  return { events: await eventsOf(run), steps: await stepsOf(run), episodes };
};

describe.each(['loops', 'throws'] as const)('an episode that %s', (fails) => {
  it('counts as unsolved in the success of a step, as in evaluations', async () => {
    const { steps, events, episodes } = await trained(fails, {}, ['hard']);
    for (const step of steps) {
      const played = await episodes(step.step);
      expect(played).toHaveLength(64);
      const whole = played.filter(({ failure }) => failure === undefined);
      expect(whole.length).toBeLessThan(64);
      expect(step.success).toBeCloseTo(whole.length / 64, 12);
      expect(step.episodes?.failed).toBe(64 - whole.length);
    }
    const said = events.flatMap((event) => (event.type === 'warning' ? event.message : []));
    expect(said.filter((message) => /all of them succeed|Harder tasks/.test(message))).toEqual([]);
  });

  it('counts in the curriculum, so that a level is predicted at the share that it solves', async () => {
    const curriculum = { by: 'level', target: 0.5, candidates: 1 };
    const { steps, episodes } = await trained(fails, { curriculum }, ['easy', 'hard']);
    for (const { step, levels } of steps) {
      const hard = (await episodes(step)).filter(({ task }) => Number(task.id) % 2 === 1);
      expect(levels?.hard?.success).toBeCloseTo(mean(hard.map(({ failure }) => Number(failure === undefined))), 12);
      expect(levels?.easy?.success).toBe(1);
    }
    expect(steps.at(-1)?.levels?.hard?.predicted).toBeCloseTo(steps[0]?.levels?.hard?.success as number, 12);
  });
});

it('agents learn not to loop, which costs the reward; failures of the code are left out', async () => {
  const advantagesOf = async (fails: 'loops' | 'throws') => {
    const failed = (await (await trained(fails, { steps: 1 }, ['hard'])).episodes(1)).filter(
      ({ failure }) => failure !== undefined,
    );
    expect(failed.length).toBeGreaterThan(0);
    return failed.flatMap(({ turns }) => turns.map(({ advantage }) => advantage ?? 'none'));
  };
  expect((await advantagesOf('loops')).every((advantage) => (advantage as number) < 0)).toBe(true);
  expect(new Set(await advantagesOf('throws'))).toEqual(new Set(['none']));
});
