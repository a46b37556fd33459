import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadRecipe } from '../../src/method/recipe/load-recipe.js';
import { type Recipe, recipeJson } from '../../src/method/recipe/recipe.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { train } from '../../src/runs/run/api.js';
import type { RunPlace } from '../../src/runs/run/start-run.js';
import { evaluation, finished, started } from '../fixtures/run-events.js';
import { drmas } from '../support/command-line.js';
import { quickPlace } from '../support/quick-place.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();

/** A solver asks a critic up to four times; the critic has nothing to do. */
const teamText = `
import { agent, choiceTable, defineRecipe, defineTeam, oneOf } from 'drmas';
import { z } from 'zod';

const player = (absent?: string) => agent({ parse: oneOf('a', 'b'), sampling: { maxTokens: 1 }, absent });
export default defineRecipe({
  team: defineTeam({
    name: 'pair',
    task: z.object({ right: z.enum(['a', 'b']) }),
    agents: { solver: player(), critic: player('a') },
    limits: { rounds: 4 },
    async play({ task, agents: { solver, critic }, limits }) {
      let answer: string | undefined;
      for (let round = 0; round < limits.rounds; round++) {
        answer = (await solver(task.right.toUpperCase())).value;
        if ((await critic('A')).value === 'a') break;
      }
      return answer;
    },
    reward: ({ outcome, task }) => outcome === task.right,
  }),
  tasks: {
    name: 'letters',
    load: async () => ({ name: 'letters', size: 400, at: (i: number) => ({ id: String(i), data: { right: i % 2 ? 'a' : 'b' } }) }),
  },
  model: choiceTable({ features: ['A', 'B'], choices: ['a', 'b'] }),
  agents: { critic: { callCost: 0.01 } },
  policies: { critic: { clipNorm: 2 } },
  training: { steps: 1, tasksPerStep: 2, groupSize: 2 },
  evaluation: { every: 1, tasks: 400, samples: 1 },
});
`;

async function fileOf(name: string, text = teamText): Promise<string> {
  await mkdir(join(root, name), { recursive: true });
  const file = join(root, name, 'my-team.ts');
  await writeFile(file, text);
  return file;
}

/** Runs whose scores and tokens follow from the recipe: the critic is useless, and one round is not enough. */
const place: RunPlace = {
  ...quickPlace,
  async executeRun({ assign, limits, seed }: Recipe, run, { signal }) {
    await run.begin();
    const isOne = assign.critic === assign.solver;
    const score = 0.9 + 0.001 * seed - (limits?.rounds === 1 ? 0.2 : 0) - (isOne ? 0.1 : 0);
    const tokens = { read: 400 * (limits?.rounds ?? 4), written: 400, trained: 0 };
    const { agents, ...event } = evaluation(1, score);
    const [own = {}] = Object.values(agents);
    const critic = typeof assign.critic === 'string' ? { critic: { ...own, tokens } } : {};
    run.emit(started);
    run.emit({ ...event, tasks: 400, samples: 1, agents: { solver: { ...own, tokens }, ...critic } } as never);
    await run.writeCheckpoint(1, async () => {});
    signal.throwIfAborted();
    run.emit(finished);
  },
};
const forecastRun = async () => ({ time: { seconds: 12 } }) as never;

describe('drmas shape', () => {
  it('tells the plan, drops hopeless teams, and writes the recipe of the smallest team that is as good', async () => {
    const file = await fileOf('whole');
    const run = join(root, 'whole', 'study');
    const { code, out: printed } = await drmas(['shape', file, '--run', run, '--jobs', '1'], { place, forecastRun });
    expect(code).toBe(0);
    const out = printed.replaceAll(/\s+/g, ' ');
    expect(out).toMatch(/4 smaller teams: without critic, rounds 2, rounds 1, one policy for solver\+critic/);
    expect(out).toContain('not tried: the team needs solver');
    expect(out).toMatch(/at most 25 runs: about 5:00 min/);
    expect(out).toMatch(/without critic 90\.3 % 5 [\d.]+ 50 % 4 \+0\.0 \[\S+ \S+\] 0\.0062 as good/);
    expect(out).toMatch(/rounds 2 90\.3 % 6 [\d.]+ 60 % 8 .*? as good/);
    expect(out).toMatch(/rounds 1 70\.\d % [^%]*% \d -20\.0 \[.*?\] dropped after 2 pairs/);
    expect(out).toContain('the smallest team that is as good: without critic');
    expect(await readFile(join(run, 'shape.svg'), 'utf8')).toContain('chosen: without critic');
    const dropped = (await readdir(run)).filter((name) => name.startsWith('rounds-1'));
    expect(dropped).toEqual(['rounds-1-seed-1', 'rounds-1-seed-2']);

    const loaded = await loadRecipe(join(run, 'recipe.ts'));
    const json = (recipe: Recipe) => recipeJson({ ...recipe, code: undefined });
    const variant = JSON.parse(await readFile(join(run, 'without-critic-seed-1', 'recipe.json'), 'utf8'));
    expect(json(resolveRecipe(loaded.definition, { name: loaded.name }))).toEqual(variant.resolved);
    const { run: trained } = await train(join(run, 'recipe.ts'), { run: join(root, 'whole', 'trained'), threads: 1 });
    const events = await readFile(join(trained, 'events.jsonl'), 'utf8');
    expect(events).not.toContain('endpoint.nondeterministic');
    const lines = events
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const last = lines.findLast(({ type }) => type === 'evaluation');
    // Each episode is one call of the solver, and the constant says 'a' and costs nothing.
    expect(last.agents.solver.callsPerEpisode).toBe(1);
    expect(last.agents.critic.tokens).toEqual({ read: 0, written: 0, trained: 0 });
  });

  it('recommends the whole team if no smaller one is shown to be as good', async () => {
    const file = await fileOf('needed');
    const run = join(root, 'needed', 'study');
    const words = ['shape', file, '--run', run, '--cuts', 'merge', '--json'];
    const { code, out } = await drmas(words, { place });
    expect(code).toBe(0);
    const result = JSON.parse(out.trim().split('\n').at(-1) ?? '');
    expect(result).toMatchObject({
      type: 'shape',
      unit: 'operations',
      variants: [{ cut: 'merge', verdict: 'dropped' }],
    });
    expect(result).not.toHaveProperty('chosen');
    expect(existsSync(join(run, 'recipe.ts'))).toBe(false);
    const people = await drmas(['shape', run], { place });
    expect(people.out).toContain('keep the whole team');
  });

  it('resumes after an interruption, and gives the answer of an uninterrupted study', async () => {
    const file = await fileOf('resumed');
    const answerIn = async (run: string) => {
      const { directory: _, file: __, ...answer } = JSON.parse(await readFile(join(run, 'shape.json'), 'utf8'));
      return answer;
    };
    const whole = join(root, 'resumed', 'whole');
    await drmas(['shape', file, '--run', whole, '--cuts', 'drop,limit', '--seeds', '4'], { place, forecastRun });
    const run = join(root, 'resumed', 'study');
    const controller = new AbortController();
    let runs = 0;
    const executeRun: RunPlace['executeRun'] = async (...job) => {
      await place.executeRun(...job);
      if (++runs === 4) controller.abort(new Error('interrupted'));
    };
    const words = ['shape', file, '--run', run, '--cuts', 'drop,limit', '--seeds', '4', '--jobs', '1'];
    const first = await drmas(words, { place: { ...place, executeRun }, signal: controller.signal, forecastRun });
    expect(first.code).toBe(130);
    expect(first.out).toMatch(/interrupted; resume with: npx drmas shape .*study'?\n$/);
    expect((await drmas(['shape', run], { place })).code).toBe(0);
    expect(await answerIn(run)).toEqual(await answerIn(whole));
    for (const flag of [
      ['--margin', '3'],
      ['--cuts', 'drop'],
      ['--set', 'training.steps=2'],
    ])
      expect(await drmas(['shape', run, ...flag], { place })).toMatchObject({
        code: 2,
        err: expect.stringMatching(/resumes with its own settings/),
      });
    const other = await drmas(['shape', file, '--run', run, '--margin', '3'], { place, forecastRun });
    expect(other).toMatchObject({ code: 2, err: expect.stringMatching(/was begun with another --margin/) });
  });

  it('refuses wrong flags before it creates anything', async () => {
    const file = await fileOf('refused');
    const run = join(root, 'refused', 'study');
    for (const [words, says] of [
      [['--margin', '0'], /margin: expected more than 0 and less than 100 points/],
      [['--margin', '100'], /margin/],
      [['--cuts', 'drop,agents'], /no cut 'agents'; expected some of drop, limit, model, merge, freeze/],
      [['--cuts', 'freeze'], /no smaller team follows from the recipe/],
      [['--seeds', '1'], /seeds/],
      [['--set', 'limits.turns=2'], /limits/],
      [['--set', 'limits.rounds=0'], /limits\.rounds/],
    ] as const) {
      const { code, err } = await drmas(['shape', file, '--run', run, ...words], { place, forecastRun });
      expect(code, words.join(' ')).toBe(2);
      expect(err).toMatch(says);
    }
    expect(existsSync(run)).toBe(false);
  });
});
