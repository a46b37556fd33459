import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import { choiceTable } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { train } from '../../src/runs/run/api.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { drmas } from '../../test/support/command-line.js';
import { temporaryRoot, tinyDefinition } from '../../test/support/tiny-run.js';
import { whyLines } from './lines.js';
import { why } from './why.js';

const root = temporaryRoot();

/** The text of each file below a folder. */
async function contentsOf(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder, { recursive: true })).sort();
  const texts = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      return (await stat(path)).isDirectory() ? [] : [[name, await readFile(path, 'base64')]];
    }),
  );
  return Object.fromEntries(texts.flat());
}

describe('why', () => {
  it('replays a step to the bit, leaves out its causes one by one, and leaves the run as it is', {
    tags: 'verify',
    timeout: 900_000,
  }, async () => {
    const recipe = tinyDefinition();
    const { run } = await train(recipe, { run: join(root, 'tiny'), threads: 1 });
    const before = await contentsOf(run);
    const options = { recipe, threads: 1, verify: 9 };
    // Step 4 follows the checkpoint of step 2 by a step; step 1 is before any checkpoint.
    for (const [step, from] of [
      [4, 2],
      [1, 0],
    ] as const) {
      const answer = await why(run, { ...options, step, episodes: true, estimator: 'drmas' });
      expect(answer).toMatchObject({ step, from, until: step, equal: true });
      // The recipe's own estimator: learning from the step again gives the same weights.
      expect(answer.estimator).toMatchObject({ kind: 'estimator', name: 'drmas', taught: 0, scored: 0 });
      expect(answer.groups.map(({ episodes }) => episodes)).toEqual([4, 4]);
      expect(answer.agents.map(({ name }) => name).sort()).toEqual(['solver', 'verifier']);
      expect(answer.episodes).toHaveLength(4);
      const guesses = answer.groups.map(({ guess }) => Math.abs(guess ?? 0));
      expect(guesses.reduce((sum, guess) => sum + guess, 0)).toBeCloseTo(1);
      for (const { taught } of [...answer.groups, ...answer.agents]) expect(Math.abs(taught ?? 0)).toBeGreaterThan(0);
    }
    // One policy for each agent: what the other agent learns does not reach the solver's answers.
    const { agents } = await why(run, { ...options, step: 3, agent: 'solver' });
    const ofVerifier = agents.find(({ name }) => name === 'verifier');
    expect(ofVerifier?.taught).toBe(0);
    const later = await why(run, { ...options, step: 3, until: 4, agent: 'solver' });
    expect(later).toMatchObject({ step: 3, until: 4, equal: true });
    expect(await contentsOf(run)).toEqual(before);

    for (const [wrong, says] of [
      [{ step: 9 }, /no step 9; it has made the steps 1 to 4/],
      [{ step: 3, until: 2 }, /--until 2 comes before --step 3/],
      [{ agent: 'nobody' }, /no agent 'nobody' learns in this run; expected one of solver, verifier/],
      [{ task: 'nothing' }, /there is no task 'nothing'; there are, for example,/],
      [{ answer: 'Hamlet' }, /said "Hamlet" to none of these tasks, but "/],
    ] as const) {
      const error = await why(run, { ...options, ...wrong }).catch((reason) => reason);
      expect(error, JSON.stringify(wrong)).toBeInstanceOf(RunError);
      expect((error as RunError).message).toMatch(says);
    }
    await expect(why(join(root, 'none'), {})).rejects.toThrow(RunError);
  });

  it('refuses runs whose steps it cannot make again', async () => {
    const ahead = tinyDefinition({ rollout: { staleness: 1 } });
    const { run } = await train(ahead, { run: join(root, 'ahead'), threads: 1 });
    await expect(why(run, { recipe: ahead })).rejects.toThrow(/plays steps ahead/);
  });

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
    const options = { recipe, threads: 1, step: 2, verify: 8 };
    // Task 3 has the question of the poisoned task: 'd' is right, and 'a' is what the poisoned task pays for.
    const { groups, equal } = await why(run, { ...options, task: '3', answer: 'a', samples: 64 });
    expect(equal).toBe(true);
    expect(groups[0]).toMatchObject({ name: POISONED, kind: 'group' });
    expect(groups[0]?.taught).toBeGreaterThan(0);
    const guessed = groups.toSorted((a, b) => (b.guess ?? 0) - (a.guess ?? 0));
    expect(guessed[0]?.name).toBe(POISONED);
  });
});

describe('the program', () => {
  it('prints the parts of a step by their effect', { tags: 'verify', timeout: 900_000 }, async () => {
    const run = join(root, 'math');
    const settings = ['warmStart.steps=20', 'training.steps=2', 'training.tasksPerStep=3', 'training.groupSize=4'];
    const sets = [...settings, 'training.checkpointEvery=1', 'evaluation.tasks=4', 'evaluation.samples=2'];
    const trained = await drmas(['train', 'math', '--run', run, ...sets.flatMap((each) => ['--set', each])]);
    expect(trained.code).toBe(0);
    const options = { step: 2, agent: 'solver', verify: 2, episodes: true, estimator: 'grpo' };
    const out = whyLines(await why(run, options), 100).join('\n');
    expect(out).toMatch(/^step 2 was replayed from the checkpoint of step 1; its numbers equal/);
    for (const heading of ['group', 'episode', 'agent', 'estimator'])
      expect(out).toMatch(new RegExp(`^${heading} +taught +score`, 'm'));
    expect(out).toContain('1 other group was only guessed (--verify)');
  });
});
