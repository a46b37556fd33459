// @module-tag verify
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mean } from '../../src/base/core/statistics.js';
import { nodeHost } from '../../src/base/platform/node-host.js';
import { checkpoint, lora } from '../../src/engine/model/model-spec.js';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { executeRun } from '../../src/runs/run/execute-run.js';
import type { FakeName } from '../support/tinker-fake/behaviour.js';
import type { FakeOptions } from '../support/tinker-fake/options.js';
import { remoteRecipe, writeSymbolsModel } from '../support/tinker-fake/run.js';
import { TinkerFake } from '../support/tinker-fake/server.js';
import { eventsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

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

describe('a team on a server', () => {
  it('learns there, whatever the server makes of losses: the same run on two that differ', async () => {
    const rewards = async (behaves: 'skyrl-jax' | 'hosted', ...overrides: string[]) => {
      const fake = await serve(behaves);
      const run = await trainTiny(
        root,
        remoteRecipe(directory, { url: fake.url, profile: behaves }, {}, [...faster, ...longer, ...overrides]),
      );
      expect(fake.models).toBe(0); // all places on the server are free again
      return (await run.events()).flatMap((event) => (event.type === 'step' ? [event.reward.mean] : []));
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
