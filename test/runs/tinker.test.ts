// @module-tag verify
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mean } from '@drmas/engine/math';
import { checkpoint, lora } from '@drmas/engine/model';
import { nodeHost } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { drmas } from '../support/command-line.js';
import { remoteRecipe, writeSymbolsModel } from '../support/tinker-fake/open.js';
import type { FakeName, FakeOptions } from '../support/tinker-fake/options.js';
import { TinkerFake } from '../support/tinker-fake/server.js';
import { eventsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

describe('a team on a server', () => {
  const root = temporaryRoot();
  let directory = '';
  beforeAll(async () => {
    directory = await writeSymbolsModel(root);
  });
  const fakes: TinkerFake[] = [];
  afterAll(() => Promise.all(fakes.map((fake) => fake.close())));

  async function serve(behaves: FakeName, options: Partial<FakeOptions> = {}): Promise<TinkerFake> {
    const fake = await TinkerFake.start({ directory, behaves, ...options });
    fakes.push(fake);
    return fake;
  }

  const longer = ['training.steps=6', 'training.groupSize=8', 'training.tasksPerStep=4', 'evaluation.tasks=1'];
  const brief = ['training.steps=1', 'evaluation.tasks=1'];
  const faster = ['solver', 'verifier'].map((policy) => `policies.${policy}.optimizer.learningRate=0.05`);

  /** Base and rank of every model that was asked for. */
  const adaptersOf = (fake: TinkerFake) =>
    fake.log
      .filter(({ path }) => path === 'create_model')
      .map(({ body }) => `${body.base_model} ${(body.lora_config as { rank: number }).rank}`)
      .sort();

  it('learns there, whatever the server makes of losses: the same run on two that differ', async () => {
    const rewards = async (behaves: 'skyrl-jax' | 'hosted', ...overrides: string[]) => {
      const fake = await serve(behaves);
      const run = await trainTiny(
        root,
        remoteRecipe(directory, { url: fake.url, profile: behaves }, {}, [...faster, ...longer, ...overrides]),
      );
      expect(fake.models).toBe(0); // all places on the server are free again
      return (await run.events()).flatMap((event) => (event.type === 'step' ? [event.reward?.mean ?? Number.NaN] : []));
    };
    const [averaging, summing] = [await rewards('skyrl-jax'), await rewards('hosted', 'training.steps=3')];
    for (const [i, reward] of summing.entries()) expect(averaging[i]).toBeCloseTo(reward, 6);
    expect(summing).toHaveLength(3);
    expect(mean(averaging.slice(-3))).toBeGreaterThan(1.2 * mean(averaging.slice(0, 3)));
  }, 120_000);

  it('has policies on models of their own, each with its own rank', async () => {
    const wide = await writeSymbolsModel(root, { name: 'wide', config: { width: 16, feedForward: 20 } });
    const fake = await serve('skyrl-jax', { more: { wide } });
    const backend = { url: fake.url, profile: 'skyrl-jax', models: { [wide]: 'wide' } } as const;
    const policies = {
      solver: { model: lora(checkpoint(directory), { rank: 4 }) },
      verifier: { model: lora(checkpoint(wide), { rank: 2 }) },
    };
    const run = await trainTiny(root, remoteRecipe(directory, backend, { policies } as Partial<RecipeInput>, brief));
    expect(adaptersOf(fake)).toEqual([`${directory} 4`, 'wide 2']);
    const events = await run.events();
    // Rank by inputs + outputs of q, k, v, o, then of gate, up, down.
    const parameters = { solver: 4 * (16 + 12 + 12 + 16 + 60), verifier: 2 * (24 + 20 + 20 + 24 + 108) };
    expect(events.find(({ type }) => type === 'run.started')).toMatchObject({ parameters });
    const steps = events.flatMap((event) => (event.type === 'step' ? [event.policies] : []));
    expect(steps).toMatchObject([{ solver: { gradientNorm: expect.any(Number) }, verifier: {} }]);
  });

  it('has one policy where its agents share it', async () => {
    const fake = await serve('skyrl-jax');
    const recipe = remoteRecipe(directory, { url: fake.url, profile: 'skyrl-jax' }, { assign: 'shared' }, brief);
    const run = await trainTiny(root, recipe);
    expect(adaptersOf(fake)).toEqual([`${directory} 4`]);
    const steps = (await run.events()).flatMap((event) => (event.type === 'step' ? [event] : []));
    expect(steps.map(({ policies }) => Object.keys(policies))).toEqual([['shared']]);
    expect(Object.keys(steps[0]?.agents ?? {})).toEqual(['solver', 'verifier']);
  });

  it('resumes from a checkpoint after a restart of the server, and keeps the measured facts about it', async () => {
    const fake = await serve('skyrl-jax-head');
    const recipe = remoteRecipe(directory, { url: fake.url, apiKey: 'tml-secret' }, {}, ['evaluation.tasks=1']);
    const run = await trainTiny(root, recipe);
    // the last one is there already
    const lasting = async () =>
      (await eventsOf(run)).filter(({ type }) => type !== 'checkpoint' && type !== 'preparing');
    const before = await lasting();
    expect(before[0]).toMatchObject({ type: 'run.started', server: { reduction: 'sequence-mean', forward: true } });
    fake.restart();
    const checkpoint = { step: 2, directory: join(run.path, 'checkpoints', 'step-000002') };
    await run.rewind(checkpoint);
    await executeRun(recipe, run, nodeHost({ threads: 1 }), { checkpoint });
    expect(await lasting()).toEqual(before);
    for (const file of ['recipe.json', 'events.jsonl'])
      expect(await readFile(join(run.path, file), 'utf8')).not.toContain('tml-secret');
  }, 120_000);

  it('writes no key anywhere, also where the server repeats it', async () => {
    const fake = await serve('skyrl-jax');
    const recipe = remoteRecipe(directory, { url: fake.url, profile: 'skyrl-jax', apiKey: 'tml-secret' }, {}, brief);
    const detail = 'no "tml-secret" here';
    fake.inject('asample', ...[1, 2, 3].map(() => ({ type: 'status', status: 400, body: { detail } }) as const));
    const notices: string[] = [];
    const run = await trainTiny(root, recipe, { notify: (message) => notices.push(message) });
    const failures = (await run.events()).flatMap((event) => (event.type === 'episode.failed' ? [event.message] : []));
    expect(failures.join()).toContain('asample: the server answered 400: no "[secret]" here');
    const files = await readdir(run.path, { recursive: true, withFileTypes: true });
    for (const file of files.filter((each) => each.isFile()))
      expect(await readFile(join(file.parentPath, file.name), 'utf8')).not.toContain('tml-secret');
    expect(notices.join()).not.toContain('tml-secret');
  });

  it('counts the faults of a server in its events, and continues', async () => {
    const fake = await serve('skyrl-jax');
    const recipe = remoteRecipe(directory, { url: fake.url, profile: 'skyrl-jax', saveEvery: 1 }, {}, [
      'training.steps=3',
      'evaluation.every=3',
      'evaluation.tasks=1',
    ]);
    const page = { type: 'status', status: 200, body: '<html>busy</html>' } as const;
    fake.inject('asample', page, page, page);
    fake.inject('optim_step', { type: 'null' });
    const run = await trainTiny(root, recipe);
    const events = await run.events();
    const warnings = events.flatMap((event) => (event.type === 'warning' ? [event] : []));
    const inEvaluation = warnings.find(({ code }) => code === 'evaluation.failures');
    expect(inEvaluation?.message).toMatch(/^2 of 2 evaluation episodes failed/);
    const failed = events.filter(({ type }) => type === 'episode.failed');
    expect(failed).toHaveLength(1);
    for (const event of failed) expect(event).toMatchObject({ message: expect.stringContaining('expected JSON, got') });
    expect(warnings.filter(({ code }) => code === 'backend.recovered')).toHaveLength(1);
    expect(events.filter(({ type }) => type === 'step')).toHaveLength(3);
    expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
  });
});

describe('the commands on a server', () => {
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
