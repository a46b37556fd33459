// @module-tag verify
/** Runs whose policies an engine elsewhere samples. */
import { join } from 'node:path';
import { type SamplerInput, sglang, vllm } from '@drmas/engine/endpoints';
import { readTokenizer } from '@drmas/engine/formats';
import { checkpoint, lora } from '@drmas/engine/model';
import { nodeFiles } from '@drmas/engine/platform';
import { tinker } from '@drmas/tinker';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { type Lie, lies, liesOfTwoLists, withLie } from '../support/lying-sampler.js';
import { SamplerFake } from '../support/sampler-fake.js';
import { serveTinker } from '../support/serve-tinker.js';
import { writeSymbolsModel } from '../support/tinker-fake/open.js';
import { eventsOf, playedBits, stepsOf, temporaryRoot, tinyModel, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const fakes: Record<'vllm' | 'sglang', SamplerFake> = {} as never;
let base = '';
beforeAll(async () => {
  base = await writeSymbolsModel(root);
  for (const type of ['vllm', 'sglang'] as const) fakes[type] = await SamplerFake.start({ type, directory: base });
});
afterAll(() => Promise.all(Object.values(fakes).map((fake) => fake.close())));

const recipe = (sampler: SamplerInput, changes: Partial<RecipeInput> = {}, overrides: readonly string[] = []) =>
  tinyRecipe(
    { model: lora(checkpoint(base), { rank: 4 }), warmStart: undefined, sampler, ...changes } as Partial<RecipeInput>,
    ['evaluation.tasks=2', ...overrides],
  );
const gapsOf = async (run: Parameters<typeof stepsOf>[0]) =>
  (await stepsOf(run)).flatMap(({ agents }) => Object.values(agents).map(({ logprobGap = 0 }) => logprobGap));

it('learns from what vLLM sampled with the weights of each update, as if it had sampled itself', async () => {
  const run = await trainTiny(root, recipe(vllm({ url: fakes.vllm.url })));
  // The gap between the engine's and the trainer's log-probs. It is 0 if both use the same weights.
  expect(await gapsOf(run)).toEqual(Array((await gapsOf(run)).length).fill(0));
  const pushed = fakes.vllm.requests.flatMap(({ path, body }) => (/load_lora/.test(path) ? [body.lora_name] : []));
  expect(new Set(pushed.map((name) => /^drmas-(\w+-\d)/.exec(`${name}`)?.[1]))).toEqual(
    new Set(['solver', 'verifier'].flatMap((policy) => [0, 1, 2, 3, 4].map((version) => `${policy}-${version}`))),
  );
  expect((await eventsOf(run)).filter(({ type }) => type === 'warning')).toEqual([]);
});

it('warns of an engine whose log-probs are not the trainer’s', async () => {
  fakes.sglang.gap = -0.2; // not above 0: such log-probs are refused
  const run = await trainTiny(root, recipe(sglang({ url: fakes.sglang.url }), {}, ['training.steps=1']));
  fakes.sglang.gap = 0;
  for (const gap of await gapsOf(run)) expect(gap).toBeCloseTo(0.2, 3);
  expect(await eventsOf(run)).toContainEqual(
    expect.objectContaining({ type: 'warning', code: 'logprobs.differ', message: expect.stringMatching(/by 0\.200/) }),
  );
});

it('trains and stores no number of an engine that lies in every third answer, and each failed episode says why', async () => {
  const { vocabSize } = await readTokenizer(nodeFiles, base);
  const kinds = [...lies(vocabSize), ...liesOfTwoLists];
  let answers = 0;
  fakes.vllm.lie = (text) => {
    const lie = kinds[Math.floor(answers / 3) % kinds.length] as Lie;
    return answers++ % 3 === 0 ? withLie('vllm', lie, text) : text;
  };
  // Three steps in which so many calls fail would end a run.
  const runs: Awaited<ReturnType<typeof trainTiny>>[] = [];
  try {
    do runs.push(await trainTiny(root, recipe(vllm({ url: fakes.vllm.url }), {}, ['training.steps=2'])));
    while (answers <= 3 * kinds.length && runs.length < 8);
  } finally {
    fakes.vllm.lie = undefined;
  }
  expect(answers).toBeGreaterThan(3 * kinds.length); // each lie was told
  const bits = await Promise.all(runs.map(playedBits));
  const [played, failures] = [bits.flatMap((each) => each.played), bits.flatMap((each) => each.failures)];
  expect(failures.length).toBeGreaterThanOrEqual(kinds.length);
  for (const failure of failures) {
    expect(failure).toMatchObject({ reason: 'backend' });
    expect(failure?.message).toMatch(/^(solver|verifier): .*http:\/\/127\.0\.0\.1:\d+/);
  }
  for (const { response, logprobs } of played.flat()) {
    expect(response.every((id) => Number.isInteger(id) && id >= 0 && id < vocabSize)).toBe(true);
    expect(logprobs.every((each) => Number.isFinite(each) && each <= 0.01)).toBe(true);
    expect(logprobs).toHaveLength(response.length);
  }
  // The episodes that count are the engine's honest ones.
  for (const run of runs) for (const gap of await gapsOf(run)) expect(gap).toBe(0);
});

it('samples on vLLM a policy that a server of the Tinker protocol trains', async () => {
  const server = await serveTinker({ model: base, store: join(root, 'store') });
  try {
    vi.stubEnv('TINKER_API_KEY', server.apiKey); // the download of adapters reads it there alone
    const backend = tinker({ url: server.url });
    const run = await trainTiny(root, recipe(vllm({ url: fakes.vllm.url }), { backend }, ['training.steps=2']));
    for (const gap of await gapsOf(run)) expect(gap).toBeLessThan(1e-6);
  } finally {
    await server.close();
  }
});

it('plays a step ahead with the versions that it was begun with', async () => {
  const run = await trainTiny(root, recipe(sglang({ url: fakes.sglang.url }), { rollout: { staleness: 1 } }));
  expect((await stepsOf(run)).map(({ staleness }) => staleness)).toEqual([0, 1, 0, 1]);
});

it.each<[string, Partial<RecipeInput>, string[], RegExp]>([
  [
    'a whole model on vLLM',
    { model: tinyModel } as Partial<RecipeInput>,
    [],
    /with the sampler 'vllm' trains adapters/,
  ],
  [
    'another temperature',
    {},
    ['agents.solver.sampling.temperature=0.7'],
    /'vllm' trains at temperature 1 only, got 0\.7/,
  ],
  ['a key among the overrides', {}, ['sampler.apiKey=secret'], /SAMPLER_API_KEY/],
])('refuses %s before the run', async (_, changes, overrides, message) => {
  const refused = async () => prepareTasks(recipe(vllm({ url: fakes.vllm.url }), changes, overrides));
  await expect(refused()).rejects.toThrow(message);
});
