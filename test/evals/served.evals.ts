/** Evaluation tools of others ask a served agent. Their answers and scores equal our greedy evaluation. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { tinyDecoder } from '@drmas/engine/model';
import { type TaskSource, user } from '@drmas/engine/nouns';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { pageCode } from '../../scripts/docs/pages.js';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { evaluateRun, train } from '../../src/runs/run/api.js';
import { arithmeticSymbols } from '../../src/teams/tasks/generated/arithmetic.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { npmEnvironment } from '../support/npm-environment.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { freePort, ServerProcess } from '../support/server-process.js';
import { temporaryRoot, tinyModel } from '../support/tiny-run.js';

const PAGE = 'docs/using-trained-agents.md';
const TOKEN = 'a-token-for-evaluations';

const requirements = new URL('requirements.txt', import.meta.url);
const inspect = await pythonEnvironment({ name: 'inspect-ai', requirements, what: 'Inspect (280 MB)' });
/** The database library of promptfoo for this machine: the only one of its optional packages that it cannot miss. */
const LIBSQL: Readonly<Record<string, string>> = {
  'linux x64': '@libsql/linux-x64-gnu',
  'linux arm64': '@libsql/linux-arm64-gnu',
  'darwin arm64': '@libsql/darwin-arm64',
  'darwin x64': '@libsql/darwin-x64',
};
const libsql = LIBSQL[`${process.platform} ${process.arch}`];
const promptfoo = await npmEnvironment({
  name: 'promptfoo',
  packages: { promptfoo: '0.123.1', node: '24.21.0', ...(libsql && { [libsql]: '0.5.29' }) },
  scripts: ['node'],
  omit: ['optional', 'peer'],
  what: 'promptfoo and Node 24 (480 MB)',
});
const lighteval = await pythonEnvironment({
  name: 'lighteval',
  requirements: new URL('lighteval.txt', import.meta.url),
  further: ['torch==2.13.0', 'accelerate==1.15.0'],
  what: 'lighteval (2.1 GB with a CPU build of torch)',
});
for (const [name, installed] of Object.entries({ inspect, promptfoo, lighteval }))
  if ('unavailable' in installed) console.log(`SKIPPED: ${name}, because ${installed.unavailable}`);

const root = temporaryRoot();

/** Which of two digits is larger: a tiny model learns some of it in seconds. */
const pairs = Array.from({ length: 100 }, (_, n) => [Math.floor(n / 10), n % 10] as const);
const isTest = ([a, b]: readonly [number, number]) => (3 * a + b) % 4 === 0;
const taskOf = ([a, b]: readonly [number, number]) => ({ question: `${a}+${b}`, answer: `\\boxed{${Math.max(a, b)}}` });
type Pair = (typeof pairs)[number];
const trainPairs = pairs.filter((pair) => !isTest(pair)) as [Pair, ...Pair[]];
const questions = pairs.filter(isTest).length;
type LargerTask = ReturnType<typeof taskOf>;

const larger: TaskSource<LargerTask> = {
  name: 'larger',
  load: async (split) => {
    const tasks = pairs.filter((pair) => isTest(pair) === (split === 'test')).map(taskOf);
    const at = (index: number) => {
      const data = tasks[index % tasks.length] as LargerTask;
      return { id: data.question, data };
    };
    return { name: `larger ${split}`, size: tasks.length, at };
  },
  trace: (random) => {
    const { question, answer } = taskOf(random.pick(trainPairs));
    return { agent: 'solver', messages: [user(question)], response: answer };
  },
};

const recipe = defineRecipe({
  name: 'larger',
  team: defineTeam({
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: { solver: agent({ system: '<solver>', sampling: { maxTokens: 6 } }) },
    play: async ({ task, agents: { solver } }) => (await solver(task.question)).text,
    reward: ({ outcome, task }) => ({ correct: outcome === task.answer }),
  }),
  tasks: larger,
  model: tinyDecoder({
    width: 32,
    layers: 1,
    heads: 2,
    kvHeads: 2,
    feedForward: 64,
    context: 64,
    tokenizer: { ...tinyModel.tokenizer, symbols: arithmeticSymbols } as typeof tinyModel.tokenizer,
  }),
  warmStart: { steps: 30, batch: 16 },
  training: { steps: 3, tasksPerStep: 4, groupSize: 4 },
  evaluation: { every: 3, tasks: questions, samples: 1, sampling: { temperature: 0 } },
});

/** Our own evaluation: the score, and the answers by the questions. */
const ours: { score: number; answers: Readonly<Record<string, unknown>> } = { score: 0, answers: {} };
let server: ServerProcess;
let url: string;

beforeAll(async () => {
  const run = join(root, 'run');
  await train(recipe, { run, threads: 1 });
  const { event, episodes } = await evaluateRun(run, { recipe, threads: 1 });
  ours.score = event.averageAtK;
  ours.answers = Object.fromEntries(episodes.map(({ task, outcome }) => [task.id, outcome]));
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
  const words = ['--import', 'tsx', main, 'serve', run, '--port', String(port), '--threads', '1'];
  server = new ServerProcess(process.execPath, words, { DRMAS_TOKEN: TOKEN });
  await server.ready(`${url}/health`);
});
afterAll(() => server?.stop());

/** A folder with the tasks, and the code that the page shows for a tool, on the address of this server. */
async function folderOf(title: string, language: string, file: string): Promise<string> {
  const folder = join(root, title);
  await mkdir(join(folder, 'held-out'), { recursive: true });
  const test = await larger.load('test');
  const rows = Array.from({ length: test.size }, (_, i) => test.at(i).data);
  const lines = rows.map(({ question, answer }) => `${question},${answer}\n`);
  await writeFile(join(folder, 'held-out/test.csv'), `input,target\n${lines.join('')}`);
  await writeFile(join(folder, file), onThisPort(pageCode(PAGE, title, language)));
  return folder;
}

const onThisPort = (text: string) => text.replaceAll('http://127.0.0.1:8321', url);

/** Runs the shell lines that the page shows for a tool, without installing anything, with `more` behind the last. */
async function runLines(title: string, folder: string, programs: string, more: string): Promise<string> {
  const lines = onThisPort(pageCode(PAGE, title, 'sh')).trimEnd();
  const script = `set -e\n${lines.replace(/^pip install .*\n|npx /gm, '')} ${more}`;
  const env = {
    PATH: [programs, process.env.PATH].join(delimiter),
    HOME: folder,
    DRMAS_TOKEN: TOKEN,
    NO_COLOR: '1',
    // Whatever else a program would fetch is refused at once.
    HTTPS_PROXY: 'http://127.0.0.1:9',
    HTTP_PROXY: 'http://127.0.0.1:9',
    NO_PROXY: '127.0.0.1',
    HF_HUB_OFFLINE: '1',
    HF_DATASETS_OFFLINE: '1',
  };
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', script], {
    cwd: folder,
    env,
    maxBuffer: 2 ** 26,
  });
  return stdout + stderr;
}

it('has a score to compare: some answers are right, some wrong', () => {
  expect(ours.score).toBeGreaterThan(0.1);
  expect(ours.score).toBeLessThan(0.9);
  expect(Object.keys(ours.answers)).toHaveLength(questions);
  expect(new Set(Object.values(ours.answers)).size).toBeGreaterThan(2);
});

describe.skipIf('unavailable' in inspect)('Inspect', () => {
  const programs = 'python' in inspect ? dirname(inspect.python) : '';
  const sample = z.object({
    input: z.string(),
    output: z.object({ completion: z.string() }),
    scores: z.record(z.string(), z.object({ value: z.string() })),
  });
  const log = z.object({
    status: z.literal('success'),
    results: z.object({
      scores: z.array(z.object({ metrics: z.object({ accuracy: z.object({ value: z.number() }) }) })),
    }),
    samples: z.array(sample),
  });

  it('gives the answers and the score of our evaluation', async () => {
    const folder = await folderOf('Inspect', 'python', 'held_out.py');
    await runLines('Inspect', folder, programs, '--display plain --log-format json --log-dir logs');
    const [file = ''] = (await readdir(join(folder, 'logs'))).filter((name) => name.endsWith('.json'));
    const { results, samples } = log.parse(JSON.parse(await readFile(join(folder, 'logs', file), 'utf8')));
    expect(Object.fromEntries(samples.map(({ input, output }) => [input, output.completion]))).toEqual(ours.answers);
    expect(results.scores[0]?.metrics.accuracy.value).toBeCloseTo(ours.score, 12);
  });
});

describe.skipIf('unavailable' in promptfoo)('promptfoo', () => {
  const programs = 'folder' in promptfoo ? join(promptfoo.folder, 'node_modules/.bin') : '';
  const output = z.object({
    results: z.object({
      stats: z.object({ successes: z.number(), failures: z.number(), errors: z.literal(0) }),
      results: z.array(z.object({ vars: z.object({ input: z.string() }), response: z.object({ output: z.string() }) })),
    }),
  });

  it('gives the answers and the score of our evaluation', async () => {
    const folder = await folderOf('promptfoo', 'yaml', 'promptfooconfig.yaml');
    // It ends with 100 if a test fails, which is the case for each wrong answer.
    await runLines('promptfoo', folder, programs, '--no-write --no-table --no-progress-bar || [ $? -eq 100 ]');
    const { results } = output.parse(JSON.parse(await readFile(join(folder, 'scores.json'), 'utf8')));
    const answers = results.results.map(({ vars, response }) => [vars.input, response.output]);
    expect(Object.fromEntries(answers)).toEqual(ours.answers);
    expect(results.stats.successes / (results.stats.successes + results.stats.failures)).toBeCloseTo(ours.score, 12);
  });
});

describe.skipIf('unavailable' in lighteval)('lighteval', () => {
  const python = 'python' in lighteval ? lighteval.python : '';
  const scores = z.object({ results: z.object({ all: z.object({ em: z.number() }) }) });
  /** Prints the answers by the questions. */
  const ANSWERS = `
import glob, json, pyarrow.parquet
rows = pyarrow.parquet.read_table(glob.glob("scores/details/**/*.parquet", recursive=True)[0]).to_pylist()
print(json.dumps({row["doc"]["query"]: row["model_response"]["text"][0] for row in rows}))
`;

  it('gives the answers and the score of our evaluation', async () => {
    const folder = await folderOf('lighteval', 'python', 'held_out.py');
    const run = promisify(execFile);
    // Loading its own tasks, lighteval fetches this pickle if it is missing. Our task does not read it.
    const { stdout: at } = await run(python, [
      '-c',
      'import importlib.util as u; print(u.find_spec("lighteval").origin)',
    ]);
    await writeFile(join(dirname(at.trim()), 'tasks/tasks/tinyBenchmarks.pkl'), '');
    await runLines('lighteval', folder, dirname(python), '');
    const { stdout } = await run(python, ['-c', ANSWERS], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual(ours.answers);
    const results = join(folder, 'scores/results/openai/solver');
    const [file = ''] = await readdir(results);
    const text = await readFile(join(results, file), 'utf8');
    expect(scores.parse(JSON.parse(text)).results.all.em).toBeCloseTo(ours.score, 12);
    expect(text).not.toContain(TOKEN);
  });
});
