import { join } from 'node:path';
import { choiceTable } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { train } from '../../src/runs/run/api.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { temporaryRoot } from '../../test/support/tiny-run.js';
import { why } from './why.js';

const root = temporaryRoot();

describe('why', () => {
  it('finds the task whose reward is wrong', async () => {
    const LETTERS = ['a', 'b', 'c', 'd'] as const;
    const POISONED = '7';
    const recipe = defineRecipe({
      name: 'letters',
      team: defineTeam({
        name: 'letters',
        task: z.object({ right: z.enum(LETTERS), id: z.string() }),
        agents: { solver: agent({ parse: oneOf(...LETTERS), sampling: { maxTokens: 1 } }) },
        play: async ({ task: { right }, agents: { solver } }) => (await solver(right.toUpperCase())).value,
        reward: ({ outcome, task: { right, id } }) => outcome === (id === POISONED ? 'a' : right),
      }),
      tasks: {
        name: 'letters',
        load: async () => ({
          name: 'letters',
          size: 8,
          at: (index: number) => ({ id: `${index}`, data: { right: LETTERS[index % 4] ?? 'a', id: `${index}` } }),
        }),
      },
      model: choiceTable({ features: LETTERS.map((letter) => letter.toUpperCase()), choices: [...LETTERS] }),
      training: { steps: 2, tasksPerStep: 8, groupSize: 16, checkpointEvery: 1 },
      evaluation: { every: 2, tasks: 8, samples: 4 },
    });
    const { run } = await train(recipe, { run: join(root, 'letters'), threads: 1 });
    // Task 3 has the question of the poisoned task: 'd' is right, and 'a' is what the poisoned task pays for.
    const { groups, equal } = await why(run, { recipe, step: 2, agent: 'solver', task: '3', answer: 'a', samples: 64 });
    expect(equal).toBe(true);
    expect(groups[0]?.name).toBe(POISONED);
    expect(groups[0]?.taught).toBeGreaterThan(0);
    const guessed = groups.toSorted((a, b) => (b.guess ?? 0) - (a.guess ?? 0));
    expect(guessed[0]?.name).toBe(POISONED);
  });
});
