// @module-tag verify
/** The recipes with the Dr. MAS paper's settings: their numbers, and three steps of them on mini checkpoints. */

import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { EvaluationEvent } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { loadRecipe } from '../../src/method/recipe/load-recipe.js';
import { evaluationSampling, type Recipe } from '../../src/method/recipe/recipe.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { planRun } from '../../src/runs/studies/plan/dry-run.js';
import { searchR1Retriever } from '../../src/teams/tasks/retrieval/search-r1.js';
import { searchTeam } from '../../src/teams/team/search.js';
import type { Team } from '../../src/teams/team/team.js';
import { goldenModels, goldenPath } from '../goldens.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { freePort, ServerProcess } from '../support/server-process.js';
import { eventsOf, stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

// Before the temporary root, which has a cache of its own.
const environment = await pythonEnvironment({
  name: 'retrieval-python',
  requirements: new URL('../gateway/requirements.txt', import.meta.url),
  further: ['fastapi==0.165.0', 'uvicorn==0.54.0'],
  what: 'FastAPI (40 MB)',
});
if ('unavailable' in environment)
  console.log(`SKIPPED: retrieval servers in FastAPI, because ${environment.unavailable}`);

const root = temporaryRoot();
const data = join(root, 'data');
/** The place of a mini checkpoint whose context holds the paper's prompts. */
const mini = (name: string) => join(root, name);
const math = ['aime24', 'aime25', 'amc23', 'math500', 'minerva', 'olympiadbench'];
const questions = ['nq', 'triviaqa', 'popqa', 'hotpotqa', '2wikimultihopqa', 'musique', 'bamboogle'];

const suffix = "Let's think step by step and output the final answer within \\boxed{}.";
/** Rows as the datasets have them, of the two training sets and of the evaluation sets. */
const published: Readonly<Record<string, (n: number) => object>> = {
  'paper-math-train': (n) => ({
    data_source: 'math_dapo',
    prompt: [{ role: 'user', content: `${n}+1?\n\n${suffix}` }],
    ability: 'MATH',
    reward_model: { ground_truth: `${n + 1}`, style: 'rule' },
  }),
  'paper-math-test': (n) => ({ problem_idx: n, problem: `${n}+1?`, answer: n + 1, problem_type: ['Algebra'] }),
  // Each of the two merged sets begins with train_0.
  'paper-search-train': (n) => ({
    id: `train_${n % 2}`,
    question: `${n}+1?`,
    golden_answers: [`${n + 1}`],
    data_source: n > 2 ? 'hotpotqa' : 'nq',
    prompt: [{ role: 'user', content: `Answer the given question. Question: ${n}+1?\n` }],
    ability: 'fact-reasoning',
    reward_model: { ground_truth: { target: [`${n + 1}`] }, style: 'rule' },
    extra_info: { index: n, split: 'train' },
    metadata: null,
  }),
  'paper-search-test': (n) => ({ id: `test_${n}`, question: `${n}+1?`, golden_answers: [`${n + 1}`] }),
};

/** A retriever's server with Search-R1's protocol. */
let server: Server;
beforeAll(async () => {
  await mkdir(data);
  for (const name of goldenModels) {
    await cp(goldenPath(`models/${name}`), mini(name), { recursive: true });
    const file = join(mini(name), 'config.json');
    const config = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify({ ...config, max_position_embeddings: 4096 }));
  }
  for (const [name, row] of Object.entries(published))
    await writeFile(join(data, `${name}.jsonl`), [1, 2, 3, 4].map((n) => JSON.stringify(row(n))).join('\n'));
  server = createServer((_, response) =>
    response.end(JSON.stringify({ result: [[{ document: { contents: 'a\nb' } }]] })),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  vi.stubEnv('SEARCH_R1_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterAll(() => {
  vi.unstubAllEnvs();
  server.close();
});

/** Whether a text of a random model means the first of two words. Its length decides. */
const even = (text: string) => text.length % 2 === 0;

/** The parsers that let random models take every way through a team. */
const recipes = {
  'paper-math': {
    sets: math,
    model: 'qwen3-mini-bf16',
    others: ['policies.verifier.model.path=llama-mini'],
    parsers: { verifier: (text: string) => (even(text) ? 'approve' : 'reject') },
  },
  'paper-search': {
    sets: questions,
    model: 'qwen2-mini',
    others: ['policies.searcher.model.path=llama-mini', 'policies.answerer.model.path=llama-mini'],
    parsers: { verifier: (text: string) => (even(text) ? 'yes' : 'no'), searcher: (text: string) => `query ${text}` },
  },
} as const;
type Name = keyof typeof recipes;

async function recipeOf(name: Name, overrides: readonly string[] = [], change = (team: Team): Team => team) {
  const { definition } = await loadRecipe(name);
  const input = { ...definition.input, team: change(definition.input.team) };
  return resolveRecipe({ ...definition, input }, { name, overrides });
}

/** The recipe with mini checkpoints, a file of four tasks and steps of two tasks by three episodes. */
async function small(name: Name, assignment: readonly string[]): Promise<Recipe> {
  const { sets, model } = recipes[name];
  const resolved = await recipeOf(name);
  const fileOf = (set: string) => join(data, `${name}-${set === 'train' ? set : 'test'}.jsonl`);
  const overrides = [
    `model.path=${mini(model)}`,
    ...assignment.map((override) => override.replace(/path=(.*)/, (_, other) => `path=${mini(other)}`)),
    ...['train', ...sets.map((set) => `test.${set}`)].map((source) => `tasks.${source}.file=${fileOf(source)}`),
    ...Object.keys(resolved.agents).map((agent) => `agents.${agent}.sampling.maxTokens=6`),
    ...['steps=3', 'tasksPerStep=2', 'groupSize=3'].map((each) => `training.${each}`),
    ...['every=1', 'tasks=1', 'samples=2'].map((each) => `evaluation.${each}`),
  ];
  const parsers: Readonly<Record<string, (text: string) => unknown>> = recipes[name].parsers;
  return recipeOf(name, overrides, (team) => ({
    ...team,
    agents: Object.fromEntries(
      Object.entries(team.agents).map(([agent, role]) => [agent, { ...role, parse: parsers[agent] ?? role.parse }]),
    ),
    // Random models solve no task, so the reward counts letters.
    reward: ({ episode: { turns } }) => {
      const text = turns.map((turn) => turn.text).join('');
      return (text.match(/[a-z]/g)?.length ?? 0) / (text.length + 1);
    },
  }));
}

describe('the settings of the paper', () => {
  it('equal the settings of its math experiment', async () => {
    const recipe = await recipeOf('paper-math');
    expect(recipe.training).toMatchObject({ tasksPerStep: 32, groupSize: 8 });
    expect(recipe.evaluation).toMatchObject({ every: 10, samples: 16 });
    expect(evaluationSampling(recipe, 'verifier')).toMatchObject({ temperature: 0.6, topP: 0.95, maxTokens: 4096 });
    for (const { sampling, invalidPenalty } of Object.values(recipe.agents)) {
      expect(sampling).toEqual({ temperature: 1, topP: 1, topK: 0, maxTokens: 4096 });
      expect(invalidPenalty).toBe(0.1);
    }
    for (const policy of Object.values(recipe.policies))
      expect(policy).toMatchObject({
        model: { type: 'checkpoint', path: 'Qwen/Qwen3-4B' },
        optimizer: { type: 'adamw', learningRate: 1e-6, beta1: 0.9, beta2: 0.999, weightDecay: 0.01 },
        warmupSteps: 0,
        clipNorm: 1,
        epochs: 1,
        miniBatches: 1,
        entropyCoefficient: 0,
      });
    expect(recipe.advantage).toMatchObject({ type: 'drmas', singleton: 'raw', minimumSpread: 0, epsilon: 1e-6 });
    expect(recipe.loss).toMatchObject({ type: 'ppo-clip', clip: 0.2, dualClip: 3, aggregate: 'token-mean' });
  });

  it('equal the settings of its search experiment', async () => {
    const recipe = await recipeOf('paper-search');
    expect(recipe.training).toMatchObject({ tasksPerStep: 128, groupSize: 5 });
    expect(recipe.evaluation).toMatchObject({ every: 5, samples: 16 });
    for (const agent of Object.keys(recipe.agents)) {
      expect(recipe.agents[agent]).toMatchObject({
        invalidPenalty: 0.01,
        sampling: { temperature: 1, maxTokens: 800 },
      });
      expect(evaluationSampling(recipe, agent)).toMatchObject({ temperature: 0.6, topP: 0.95 });
    }
    for (const policy of Object.values(recipe.policies))
      expect(policy).toMatchObject({
        model: { path: 'Qwen/Qwen2.5-3B' },
        optimizer: { learningRate: 1e-6 },
        epochs: 1,
        miniBatches: 5,
        entropyCoefficient: 0.001,
      });
    expect(recipe.loss).toMatchObject({ clip: 0.2, dualClip: 3 });
  });

  it('stay with GRPO, whose choices follow the type', async () => {
    const choices = ['type=grpo', 'singleton=raw', 'minimumSpread=0'].map((choice) => `advantage.${choice}`);
    for (const name of Object.keys(recipes) as Name[])
      expect((await recipeOf(name, choices)).advantage).toMatchObject({
        type: 'grpo',
        singleton: 'raw',
        minimumSpread: 0,
        epsilon: 1e-6,
        episodeScore: 'mean',
      });
  });

  it('are the same for one shared policy', async () => {
    for (const name of Object.keys(recipes) as Name[]) {
      const [apart, shared] = [await recipeOf(name), await recipeOf(name, ['assign=shared'])];
      expect(Object.keys(shared.policies)).toEqual(['shared']);
      expect(shared.policies.shared).toEqual(Object.values(apart.policies)[0]);
    }
  });
});

// The paper's prompts have up to 2000 tokens.
describe.each(Object.keys(recipes) as Name[])('%s', { timeout: 300_000 }, (name) => {
  it.each([
    ['separate', []],
    ['shared', ['assign=shared']],
    ['heterogeneous', recipes[name].others],
  ] as const)('is planned and plays three steps on mini checkpoints: %s', async (_, assignment) => {
    const recipe = await small(name, assignment);
    const plan = await planRun(recipe, await prepareTasks(recipe));
    expect(plan.tokens.episodes.step).toBe(6);
    const run = await trainTiny(root, recipe);
    const steps = await stepsOf(run);
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3]);
    for (const { policies } of steps)
      for (const policy of Object.keys(recipe.policies))
        expect(policies[policy]?.gradientNorm, policy).toBeGreaterThan(0);
    const evaluations = (await eventsOf(run)).filter((event): event is EvaluationEvent => event.type === 'evaluation');
    expect(evaluations.map(({ samples }) => samples)).toEqual([2, 1, 1, 2]);
    for (const { slices, benchmarkMean } of evaluations) {
      expect(Object.keys(slices?.benchmark ?? {})).toEqual(recipes[name].sets);
      expect(benchmarkMean?.averageAtK).toBeGreaterThanOrEqual(0);
    }
    const played = await readEpisodes(nodeFiles, run.evaluationEpisodesPath(3));
    expect(played.flatMap(({ failure }) => failure ?? [])).toEqual([]);
    for (const { temperature } of played.flatMap(({ turns }) => turns)) expect(temperature).toBe(0.6);
    const called = new Set(played.flatMap(({ turns }) => turns.map(({ agent }) => agent)));
    expect([...called].sort()).toEqual(Object.keys(recipe.agents).sort());
  });
});

describe.skipIf('unavailable' in environment)('a retrieval server in FastAPI', { timeout: 300_000 }, () => {
  const servers: ServerProcess[] = [];
  afterAll(() => Promise.all(servers.map((each) => each.stop())));

  async function recipeOn(schema: string): Promise<Recipe> {
    const port = await freePort();
    const python = 'python' in environment ? environment.python : '';
    const started = new ServerProcess(
      python,
      [join(import.meta.dirname, 'retrieval_servers.py'), schema, `${port}`],
      {},
    );
    servers.push(started);
    await started.ready(`http://127.0.0.1:${port}/openapi.json`);
    const retriever = searchR1Retriever({ url: `http://127.0.0.1:${port}` });
    const team = searchTeam({ form: 'paper', retriever });
    const recipe = await small('paper-search', []);
    return { ...recipe, team: { ...recipe.team, play: team.play, prepare: team.prepare } as Team };
  }

  it.each(['search-r1', 'paper'])('with the schema of %s answers every search of three steps', async (schema) => {
    const run = await trainTiny(root, await recipeOn(schema));
    expect((await stepsOf(run)).map(({ step }) => step)).toEqual([1, 2, 3]);
    const played = (
      await Promise.all([0, 3].map((n) => readEpisodes(nodeFiles, run.evaluationEpisodesPath(n))))
    ).flat();
    expect(played.flatMap(({ failure }) => failure ?? [])).toEqual([]);
    const text = played.flatMap(({ turns }) => turns.flatMap(({ messages }) => messages.map(({ content }) => content)));
    expect(text.join('')).toContain(`text 2 of ${schema}`);
  });

  it('with another schema stops the run before training, and the message has ours', async () => {
    const recipe = await recipeOn('other');
    await expect(trainTiny(root, recipe)).rejects.toThrow(
      /^team 'search' cannot play: .*status 422: .*Field required.*drmas posts \{ queries: \[text\] \} \(Search-R1\), query: text/s,
    );
  });
});
