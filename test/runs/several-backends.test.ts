// @module-tag verify
/** One team on several engines: the embedded engine and a server, and two servers. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Backend, WeightsSpec } from '@drmas/engine/contract';
import { BackendError } from '@drmas/engine/errors';
import { checkpoint, lora } from '@drmas/engine/model';
import { nodeHost } from '@drmas/engine/platform';
import { tinker } from '@drmas/tinker';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { defineRecipe, type RecipeInput } from '../../src/method/recipe/define.js';
import { backendOf } from '../../src/method/recipe/recipe.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { verifyRun } from '../../src/method/store/verify-run.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { train } from '../../src/runs/run/api.js';
import { evaluateCheckpoint } from '../../src/runs/run/execute/evaluate-run.js';
import { loadTeam } from '../../src/runs/run/load-team.js';
import type { OpenBackend } from '../../src/runs/run/open/open-backends.js';
import { openRun } from '../../src/runs/run/open/open-run.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { requestContinuation } from '../../src/runs/run/request/continuation.js';
import { planRun } from '../../src/runs/studies/plan/dry-run.js';
import { drmas } from '../support/command-line.js';
import { serveTinker, type TinkerServer } from '../support/serve-tinker.js';
import { writeSymbolsModel } from '../support/tinker-fake/open.js';
import { TinkerFake } from '../support/tinker-fake/server.js';
import {
  filesOf,
  playedBits,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyDefinition,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();
let base = '';
const servers: TinkerServer[] = [];
const serve = async () => {
  const server = await serveTinker({ model: base, store: join(root, `store-${servers.length}`) });
  servers.push(server);
  return server;
};
let url = '';
beforeAll(async () => {
  base = await writeSymbolsModel(root);
  const server = await serve();
  url = server.url;
  vi.stubEnv('TINKER_API_KEY', server.apiKey);
});
afterAll(() => Promise.all(servers.map((server) => server.close())));

/** The tiny team on adapters. Each policy may have a backend of its own. */
const on = (backends: Readonly<Record<string, ReturnType<typeof tinker>>>, changes: Partial<RecipeInput> = {}) =>
  ({
    model: lora(checkpoint(base), { rank: 4, alpha: 8 }),
    warmStart: undefined,
    policies: Object.fromEntries(Object.entries(backends).map(([policy, backend]) => [policy, { backend }])),
    ...changes,
  }) as unknown as Partial<RecipeInput>;
const brief = ['evaluation.tasks=2', 'training.steps=3'];
const startOf = async (run: RunDirectory) => (await run.events()).find(({ type }) => type === 'run.started');

describe('a team on the embedded engine and a server', () => {
  it('has the run of one engine, bit for bit, and the same weights if they are on this machine', async () => {
    const apart = await trainTiny(root, tinyRecipe(on({ verifier: tinker({ url }) }), brief));
    const together = await trainTiny(root, tinyRecipe(on({}), brief));
    expect(await playedBits(apart)).toEqual(await playedBits(together));
    const weights = async (run: RunDirectory) =>
      Object.entries(await filesOf(run)).filter(([name]) => /solver\/.*safetensors$/.test(name));
    expect(await weights(apart)).toHaveLength(4); // adapter and optimiser of two checkpoints
    expect(await weights(apart)).toEqual(await weights(together));
    // The one sees whole distributions, the other sampled tokens alone: this tells who computed.
    const entropies = async (run: RunDirectory) =>
      (await stepsOf(run)).map(({ agents: { solver, verifier } }) => [solver?.entropy, verifier?.entropy] as const);
    const [seen, whole] = [await entropies(apart), await entropies(together)];
    expect(seen.map(([solver]) => solver)).toEqual(whole.map(([solver]) => solver));
    expect(seen.map(([, verifier]) => verifier)).not.toEqual(whole.map(([, verifier]) => verifier));
    const started = await startOf(apart);
    expect(started).toMatchObject({
      backends: {
        solver: { kernels: expect.not.stringMatching('tinker') },
        verifier: { kernels: 'tinker', isa: 'drmas' },
      },
    });
    expect(await startOf(together)).not.toHaveProperty('backends');
  });

  it('goes on from a checkpoint, is whole, is evaluated, plays tasks, and is exported from either', async () => {
    const recipe = tinyRecipe(on({ verifier: tinker({ url }) }), ['evaluation.tasks=2']);
    const whole = await trainTiny(root, recipe);
    const resumed = await resumedTiny(root, recipe, 2);
    expect((await playedBits(resumed)).played).toEqual((await playedBits(whole)).played);
    const parts = await verifyRun(resumed.path);
    expect(parts.filter(({ state }) => state === 'damaged')).toEqual([]);

    const last = await whole.latestCheckpoint();
    if (last === undefined) throw new Error('the run has no checkpoint');
    const { event } = await evaluateCheckpoint(recipe, last, nodeHost({ threads: 1 }));
    const logged = (await whole.events()).findLast(({ type }) => type === 'evaluation');
    expect(logged).toMatchObject({ averageAtK: event.averageAtK, interval: event.interval });
  });

  it('plays single tasks, and is exported and served where its weights are', async () => {
    const definition = defineRecipe({ ...tinyDefinition(on({ verifier: tinker({ url }) })).input });
    const run = join(root, 'program');
    await train(definition, { run, threads: 1, set: [...brief] });
    await using team = await loadTeam(run, { recipe: definition, threads: 1 });
    const { episode } = await team.play({ question: '1+2', answer: '3' });
    expect(episode.turns.map(({ agent }) => agent).slice(0, 2)).toEqual(['solver', 'verifier']);

    for (const agent of ['solver', 'verifier']) {
      const to = join(root, `exported-${agent}`);
      // The run of a program says where its weights are, and no recipe that a person typed.
      const words = ['export', run, '--agent', agent, '--format', 'peft', '--to', to, '--allow-endpoint', url];
      expect(await drmas(words)).toMatchObject({ code: 0 });
      expect(JSON.parse(await readFile(join(to, 'adapter_config.json'), 'utf8'))).toMatchObject({
        r: 4,
        target_modules: expect.arrayContaining(['q_proj', 'down_proj']),
      });
    }
    const refused = await drmas(['chat', run, '--agent', 'verifier']);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('a server keeps the weights of verifier') });
  });

  it('is exported with the key that the recipe has, and names the reason if the recipe is gone', async () => {
    vi.stubEnv('TINKER_API_KEY', '');
    try {
      const source = (path: string) => JSON.stringify(fileURLToPath(new URL(`../../${path}`, import.meta.url)));
      const file = join(root, 'keyed.ts');
      const code = `
        import { agent, checkpoint, defineRecipe, defineTeam, lora } from ${source('src/index.ts')};
        import { arithmetic } from ${source('src/teams/tasks/generated/arithmetic.ts')};
        import { tinker } from ${source('packages/tinker/src/client/tinker-spec.ts')};
        import { z } from ${source('node_modules/zod/index.js')};
        const team = defineTeam({
          name: 'one', task: z.object({ question: z.string(), answer: z.string() }),
          agents: { solver: agent({ system: '<solver>', sampling: { maxTokens: 4 } }) },
          play: async ({ task, agents }) => (await agents.solver(task.question)).text,
          reward: ({ outcome }) => outcome.length % 2,
        });
        export default defineRecipe({
          team, tasks: arithmetic({ operations: [1, 2] }), assign: 'shared',
          model: lora(checkpoint(${JSON.stringify(base)}), { rank: 2 }),
          backend: tinker({ url: ${JSON.stringify(url)}, apiKey: ${JSON.stringify(servers[0]?.apiKey)} }),
          training: { steps: 1, tasksPerStep: 1, groupSize: 2 }, evaluation: { tasks: 1, samples: 1 },
        });`;
      await writeFile(file, code);
      const run = join(root, 'keyed');
      const trained = await drmas(['train', file, '--run', run, '--threads', '1']);
      expect(trained).toMatchObject({ code: 0 });
      const words = ['export', run, '--agent', 'solver', '--format', 'peft', '--to'];
      expect(await drmas([...words, join(root, 'keyed-export')])).toMatchObject({ code: 0 });
      await rm(file);
      const without = await drmas([...words, join(root, 'keyless-export'), '--allow-endpoint', url]);
      expect(without).toMatchObject({
        code: 1,
        err: expect.stringMatching(/cannot read apiKey in the recipe: [\s\S]*401/),
      });
    } finally {
      vi.stubEnv('TINKER_API_KEY', servers[0]?.apiKey ?? '');
    }
  });

  it('is held near a policy of the other engine', async () => {
    const kl = { kl: { coefficient: 0.1, reference: { type: 'policy', policy: 'verifier' } } };
    const near = (backend?: ReturnType<typeof tinker>) => {
      const policies = { solver: kl, verifier: backend === undefined ? {} : { backend } };
      return on({}, { policies } as unknown as Partial<RecipeInput>);
    };
    const apart = await trainTiny(root, tinyRecipe(near(tinker({ url })), brief));
    const together = await trainTiny(root, tinyRecipe(near(), brief));
    expect(await playedBits(apart)).toEqual(await playedBits(together));
  });
});

describe('a team on two servers', () => {
  it('has a model on each, and frees both places', async () => {
    const fakes = await Promise.all([1, 2].map(() => TinkerFake.start({ directory: base, behaves: 'skyrl-jax' })));
    const [first, second] = fakes.map((fake) => tinker({ url: fake.url, profile: 'skyrl-jax' })) as [
      ReturnType<typeof tinker>,
      ReturnType<typeof tinker>,
    ];
    const recipe = tinyRecipe(on({ verifier: second }, { backend: first }), ['training.steps=1', 'evaluation.tasks=1']);
    const run = await trainTiny(root, recipe);
    const created = fakes.map(({ log }) => log.filter(({ path }) => path === 'create_model').length);
    expect(created).toEqual([1, 1]);
    expect(fakes.map(({ models }) => models)).toEqual([0, 0]);
    expect(await startOf(run)).toMatchObject({
      backends: { solver: { server: { url: fakes[0]?.url } }, verifier: { server: { url: fakes[1]?.url } } },
    });
    await Promise.all(fakes.map((fake) => fake.close()));
  });

  it('ends the one that was started where the other cannot be', async () => {
    const fake = await TinkerFake.start({ directory: base, behaves: 'skyrl-jax' });
    const [there, away] = [fake.url, 'http://127.0.0.1:1'].map((each) => tinker({ url: each, profile: 'skyrl-jax' }));
    const recipe = tinyRecipe(on({ solver: there, verifier: away } as Parameters<typeof on>[0]), brief);
    const started: Backend[] = [];
    const openBackend: OpenBackend = async (spec, options) => {
      if ('url' in spec && spec.url !== fake.url) throw new BackendError('nobody answers');
      const backend = await backendOf(recipe, spec).open(spec, options);
      started.push(backend);
      return backend;
    };
    const opened = openRun(recipe, await prepareTasks(recipe), nodeHost({ threads: 1 }), { openBackend });
    await expect(opened).rejects.toThrow('nobody answers');
    const [backend] = started as [Backend];
    const again = async () => backend.open({ type: 'adapter' } as WeightsSpec, 'policy', 'late');
    await expect(again()).rejects.toThrow('disposed of');
    await fake.close();
  });
});

describe('what a backend of a policy cannot do', () => {
  const server = tinker({ url: 'http://127.0.0.1:1' });
  const refusal = async (overrides: readonly string[], changes: Partial<RecipeInput> = {}) => {
    const recipe = tinyRecipe(on({ verifier: server }, changes), overrides);
    return prepareTasks(recipe).then(
      () => 'nothing',
      (error: Error) => error.message,
    );
  };

  it('is refused of that policy alone, before any work', async () => {
    const backend = "the backend 'tinker'";
    expect(await refusal([])).toBe('nothing');
    expect(await refusal(['policies.verifier.entropyCoefficient=0.01'])).toContain(
      `policies.verifier.entropyCoefficient: ${backend} has no entropy bonus`,
    );
    expect(await refusal(['policies.solver.entropyCoefficient=0.01'])).toBe('nothing');
    expect(await refusal(['agents.solver.sampling.temperature=0.5'])).toBe('nothing');
    expect(await refusal(['agents.verifier.sampling.temperature=0.5'])).toContain(`${backend} trains at temperature 1`);
    expect(await refusal(['training.measureInflation=2'])).toContain(`training.measureInflation: ${backend}`);
    expect(await refusal(['advantage.type=gae'])).toContain(`advantage.type: ${backend} has no critic`);
    const { model } = tinyDefinition().input;
    expect(await refusal([], { model } as Partial<RecipeInput>)).toContain(
      `policies.verifier.model: ${backend} trains`,
    );
  });

  it('is a warm start of one base, which would have to be copied from engine to engine', async () => {
    expect(await refusal([], { warmStart: { steps: 2, batch: 2, share: 'base' } })).toMatch(
      /^warmStart.share: weights cannot be copied between backends, .*solver, verifier.*expected 'policy'/,
    );
    expect(await refusal([], { warmStart: { steps: 2, batch: 2 } })).toBe('nothing'); // adapters get one each
  });

  it('is no secret, and is one for all agents that share the policy', () => {
    const keyed = tinker({ url: 'http://127.0.0.1:1', apiKey: 'tml-secret' });
    const recipe = tinyRecipe(on({ shared: keyed }, { assign: 'shared' }));
    expect(JSON.stringify(recipe)).not.toContain('tml-secret');
    expect(recipe.policies.shared?.backend).toMatchObject({ type: 'tinker' });
    const definition = tinyDefinition(on({}));
    expect(() => resolveRecipe(definition, { overrides: ['policies.solver.backend.apiKey=tml-secret'] })).toThrow(
      /set TINKER_API_KEY/,
    );
  });
});

describe('what knows of several backends', () => {
  it('is a dry run: what each holds, and the memory of this process and of the server', async () => {
    const recipe = tinyRecipe(on({ verifier: tinker({ url: 'http://127.0.0.1:1' }) }));
    const plan = await planRun(recipe, await prepareTasks(recipe));
    expect(plan.backends).toEqual([
      { type: 'embedded', policies: ['solver'] },
      { type: 'tinker', policies: ['verifier'] },
    ]);
    const together = await planRun(tinyRecipe(on({})), await prepareTasks(recipe));
    expect(plan.memory?.total).toBeLessThan(together.memory?.total ?? 0);
    expect(plan.policies.solver?.memory).toEqual(together.policies.solver?.memory);
    expect(plan.policies.verifier).not.toHaveProperty('memory');
    expect(plan.memoryElsewhere).toMatch(/^on the server/);
  });

  it('is a run that goes on: another backend is another recipe', async () => {
    const definition = tinyDefinition(on({ verifier: tinker({ url }) }));
    const run = join(root, 'continued');
    await train(definition, { run, threads: 1, set: ['training.steps=1', 'evaluation.tasks=1'] });
    const moved = tinyDefinition(on({ verifier: tinker({ url: 'http://127.0.0.1:1' }) }));
    const directory = await RunDirectory.open(run);
    const from = 'step-000001';
    await expect(requestContinuation(directory, { recipe: moved, from })).rejects.toThrow(/resolves to other settings/);
    expect(await requestContinuation(directory, { recipe: definition, from })).toMatchObject({ changed: false });
  });
});
