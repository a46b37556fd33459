// @module-tag verify
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drmas } from '../support/command-line.js';
import { writeSymbolsModel } from '../support/tinker-fake/run.js';
import { TinkerFake } from '../support/tinker-fake/server.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();
const file = join(root, 'remote.ts');
const run = join(root, 'run');
let fake: TinkerFake;
beforeAll(async () => {
  const directory = await writeSymbolsModel(root);
  fake = await TinkerFake.start({ directory, alpha: 32 });
  await writeFile(file, recipeText(directory, fake.url));
});
afterAll(() => fake.close());

/** A recipe file that imports no installed package: a solver and a verifier whose reward grows with their digits. */
const recipeText = (path: string, url: string) => `
const agent = (maxTokens) => ({ system: undefined, parse: (text) => text, sampling: { maxTokens }, invalidPenalty: 0 });
const set = { name: 'sums', size: 2, at: (index) => ({ id: String(index), data: ['3+4', '5+1'][index] }) };
export default {
  type: 'recipe',
  input: {
    team: {
      name: 'pair',
      agents: { solver: agent(4), verifier: agent(2) },
      play: async ({ task, agents: { solver, verifier } }) => (await solver(task)).text + (await verifier(task)).text,
      reward: ({ outcome }) => (outcome.match(/[0-4]/g)?.length ?? 0) / 6,
    },
    tasks: { name: 'sums', load: async () => set },
    model: { type: 'lora', base: { type: 'checkpoint', path: ${JSON.stringify(path)} }, rank: 2 },
    backend: { type: 'tinker', url: ${JSON.stringify(url)}, profile: 'skyrl-jax' },
    training: { steps: 1, tasksPerStep: 1, groupSize: 2 },
    evaluation: { every: 1, tasks: 1, samples: 1 },
  },
};`;

const temperatures = () =>
  fake.log.flatMap(({ path, body }) =>
    path === 'asample' ? [(body.sampling_params as { temperature: number }).temperature] : [],
  );

describe('the commands on a server', () => {
  it('train a run, which names the missing features of the server', async () => {
    expect(await drmas(['train', file, '--run', run])).toMatchObject({ code: 0, err: '' });
    const events = (await readFile(join(run, 'events.jsonl'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const warnings = events.filter(({ type }) => type === 'warning').map(({ code, message }) => `${code}: ${message}`);
    expect(warnings).toEqual([
      expect.stringMatching(/^policy: .*'solver'.* alpha as 32, not the recipe's 2/),
      expect.stringMatching(/^policy: .*'verifier'.* alpha as 32/),
      expect.stringMatching(/^backend\.ignores: policies\.solver\.clipNorm is 1/),
      expect.stringMatching(/^backend\.ignores: policies\.verifier\.clipNorm is 1/),
    ]);
  });

  it('evaluate at any temperature, though they train at 1 only', async () => {
    const cold = ['solver', 'verifier'].flatMap((agent) => ['--set', `agents.${agent}.sampling.temperature=0`]);
    const before = temperatures().length;
    const { code, out } = await drmas(['evaluate', run, '--tasks', '2', '--samples', '1', ...cold]);
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('episodes: ') });
    expect(temperatures().slice(before)).toEqual([0, 0, 0, 0]);
    const refused = await drmas(['train', file, ...cold]);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('trains at temperature 1 only, got 0') });
  });

  it('probe the trained team', async () => {
    const { code, out, err } = await drmas(['plan', file, '--play', '--from', run, '--tasks', '1']);
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringMatching(/played +1 tasks x 2 episodes/) });
    expect(err).toContain("not the recipe's 2");
  });

  it('report it', async () => {
    const to = join(root, 'report.html');
    expect(await drmas(['report', run, '--to', to])).toMatchObject({ code: 0, err: '' });
    expect(await readFile(to, 'utf8')).toContain('policies.verifier.clipNorm');
  });

  it('ablate, and leave no model behind', async () => {
    const words = ['--vary', 'advantage.type=grpo,drmas', '--seeds', '1', '--run', join(root, 'ablation')];
    const { code, out } = await drmas(['ablate', file, ...words]);
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('2 runs') });
    expect(fake.models).toBe(0);
  });
});
