import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { cp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ggufOf } from '@drmas/engine/internal/model/formats/gguf/gguf-model';
import { openModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import type { Episode } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import aiSdk from '../examples/ai-sdk/recipe.js';
import concurrentCalls from '../examples/concurrent-calls.js';
import judge from '../examples/judge.js';
import keepBest from '../examples/keep-best.js';
import mcp from '../examples/mcp/recipe.js';
import mixture from '../examples/mixture.js';
import ownTeam from '../examples/own-team.js';
import perAgentRewards from '../examples/per-agent-rewards.js';
import perTurnRewards from '../examples/per-turn-rewards.js';
import rankedDrafts, { team as rankedTeam } from '../examples/ranked-drafts.js';
import slowTools from '../examples/slow-tools.js';
import toolLoop from '../examples/tool-loop.js';
import userSimulator from '../examples/user-simulator.js';
import { wandb } from '../examples/wandb.js';
import withATool from '../examples/with-a-tool.js';
import type { RecipeDefinition } from '../src/method/recipe/define.js';
import { resolveRecipe } from '../src/runs/composition/resolve-recipe.js';
import { train } from '../src/runs/run/api.js';
import { playScripted } from '../src/runs/testing/play-scripted.js';
import { goldenPath } from './goldens.js';
import { chatServer, say } from './support/chat-server.js';
import { drmas } from './support/command-line.js';
import { withEnvironment } from './support/environment.js';
import { S3_REGION, s3Fake } from './support/s3-fake.js';
import { eventsOf, temporaryRoot, tinyDefinition, trainTiny, useCache } from './support/tiny-run.js';

const root = temporaryRoot();

const runs = new Map<RecipeDefinition, ReturnType<typeof trainAnew>>();

/** The run of `trainAnew` without more overrides, which several tests look at. */
function trainOnce(definition: RecipeDefinition) {
  const run = runs.get(definition) ?? trainAnew(definition);
  runs.set(definition, run);
  return run;
}

const narrow = (definition: RecipeDefinition) =>
  Object.keys(resolveRecipe(definition).policies).flatMap((policy) => [
    `policies.${policy}.model.width=12`,
    `policies.${policy}.model.feedForward=16`,
  ]);
const SHORT = [
  ...['warmStart.steps=4', 'warmStart.batch=8', 'training.steps=2', 'training.tasksPerStep=2', 'training.groupSize=4'],
  ...['evaluation.tasks=3', 'evaluation.samples=1'],
];

/** A few steps with a model that is smaller still: every part of the example runs, nothing is learnt. */
async function trainAnew(definition: RecipeDefinition, more: readonly string[] = []) {
  const overrides = [...narrow(definition), ...SHORT, ...more];
  const run = await trainTiny(root, resolveRecipe(definition, { overrides }));
  const episodes = readFileSync(join(run.path, 'episodes', 'step-000002.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Episode);
  return { events: await eventsOf(run), episodes };
}

const examples: Record<string, RecipeDefinition> = {
  ownTeam,
  concurrentCalls,
  perAgentRewards,
  perTurnRewards,
  rankedDrafts,
  withATool,
  toolLoop,
  userSimulator,
};

const directory = join(import.meta.dirname, '../examples');
const linesOf = (name: string) => readFileSync(join(directory, name), 'utf8').trim().split('\n').length;

describe('the examples of teams', () => {
  it.each(Object.entries(examples))('%s trains from start to end', async (_, definition) => {
    const { events, episodes } = await trainOnce(definition);
    const steps = events.filter((event) => event.type === 'step');
    expect(steps.map(({ agents }) => Object.keys(agents).length)).not.toContain(0);
    expect(steps.length).toBe(2);
    expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed', steps: 2 });
    expect(events.some(({ type }) => type === 'episode.failed')).toBe(false);
    expect(episodes.length).toBe(8);
  });

  it('are short enough to be read at once', () => {
    const files = readdirSync(directory).filter((name) => name.endsWith('.ts'));
    const teams = files.filter((name) => readFileSync(join(directory, name), 'utf8').includes('defineTeam('));
    expect(teams.length).toBe([...Object.keys(examples), 'judge'].length);
    for (const name of teams) expect(linesOf(name), name).toBeLessThanOrEqual(60);
  });
});

describe('the program written with AI SDK', () => {
  it('trains as it is, and is short', async () => {
    const { events, episodes } = await trainOnce(aiSdk);
    expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed', steps: 2 });
    expect(events.some(({ type }) => type === 'episode.failed')).toBe(false);
    for (const { turns } of episodes) {
      expect(turns[0]).toMatchObject({ agent: 'buyer', tools: [{ name: 'price' }] });
      expect(turns.at(-1)?.agent).toBe('cashier');
    }
    for (const [name, longest] of [['agents.ts', 60], ['recipe.ts', 30]] as const) // biome-ignore format: a row
      expect(linesOf(join('ai-sdk', name)), name).toBeLessThanOrEqual(longest);
  });

  it('has one new word for each agent', () => {
    const text = readFileSync(join(directory, 'ai-sdk', 'agents.ts'), 'utf8');
    const models = text.split('\n').filter((line) => line.includes('model: '));
    expect(models.map((line) => line.trim())).toEqual([
      "model: trainable('buyer', { otherwise: production }),",
      "model: trainable('cashier', { otherwise: production }),",
    ]);
    expect(text.match(/drmas/g)).toHaveLength(1); // the line that imports trainable
  });
});

describe('what they show', () => {
  it('rewards by rank, in a group of any size', async () => {
    const { score } = await playScripted(rankedTeam, { question: '1+1', answer: '2' }, { solver: ['\\boxed{2}'] });
    expect([score.team, score.success]).toEqual([0, 1]);
    const { episodes } = await trainOnce(rankedDrafts);
    for (const task of new Set(episodes.map((episode) => episode.task.id))) {
      const rewards = episodes.filter((episode) => episode.task.id === task).map((episode) => episode.score.team);
      expect(rewards.reduce((sum, reward) => sum + reward, 0)).toBeCloseTo(rewards.length / 2, 9);
    }
  });

  it('a source without weight, which is tested and not trained on', { tags: 'verify' }, async () => {
    const heads = ['solver', 'verifier'].map((policy) => `policies.${policy}.model.heads=3`);
    const { events } = await trainAnew(mixture, [...heads, 'tasks.train.weights=[0,1]']);
    for (const event of events) if (event.type === 'step') expect(Object.keys(event.levels ?? {})).toEqual(['long']);
    const tested = events.flatMap((event) => (event.type === 'evaluation' ? [event.slices?.benchmark ?? {}] : []));
    expect(tested.map((slices) => Object.keys(slices).sort())).toEqual([
      ['long', 'short'],
      ['long', 'short'],
    ]);
  });

  it('a judge on a server, whose grades are the rewards', { tags: 'verify' }, async () => {
    const { requests, url } = await chatServer((_, response, i) => say(response, i % 2 === 0 ? '9' : 'I say 3'));
    vi.stubEnv('JUDGE_URL', url).stubEnv('JUDGE_MODEL', 'some-model').stubEnv('OPENAI_API_KEY', 'none');
    // The query makes it a module of its own, which reads the environment again.
    const { default: hosted } = (await import(`${join(directory, 'judge.ts')}?hosted`)) as {
      default: RecipeDefinition;
    };
    vi.unstubAllEnvs();
    const { episodes } = await trainOnce(hosted);
    expect(requests.every(({ body }) => body.model === 'some-model')).toBe(true);
    const whole = episodes.filter(({ failure }) => failure === undefined);
    expect(whole.length).toBeGreaterThan(0);
    for (const { score, turns } of whole) {
      expect(score.team).toBe(1);
      expect(turns.at(-1)).toMatchObject({ agent: 'judge', judging: true });
    }
  });

  it('a judge that is a small model of this machine: the clerk learns what it likes', { tags: 'verify' }, async () => {
    const run = await trainTiny(root, resolveRecipe(judge, { overrides: [] }));
    const scores = (await eventsOf(run)).flatMap((event) => (event.type === 'evaluation' ? [event.averageAtK] : []));
    expect(scores.at(-1)).toBeGreaterThan((scores[0] ?? 1) + 0.3);
  });

  it('a run that keeps its best checkpoint and ends early', { tags: 'verify' }, async () => {
    const heads = ['policies.coder.model.heads=3', 'policies.fixer.model.heads=3'];
    const early = ['training.steps=9', 'training.stopWhen.patience=1', 'evaluation.every=2'];
    const { events } = await trainAnew(keepBest, [...heads, ...early]);
    const ends = events.flatMap((event) => (event.type === 'stop' ? [event] : []));
    expect(ends).toMatchObject([{ step: 2, rule: 'patience' }]);
    expect(events.filter(({ type }) => type === 'best').length).toBeGreaterThan(0);
    expect(keepBest.input.training?.stopWhen).toEqual({ score: 0.9, patience: 3, minutes: 5 });
  });

  it('a sandbox that takes its time', { tags: 'verify' }, async () => {
    const heads = ['policies.coder.model.heads=3', 'policies.fixer.model.heads=3'];
    const { episodes } = await trainAnew(slowTools, heads);
    expect(episodes.length).toBe(8);
  });

  it('agents that earn for themselves', async () => {
    const { episodes } = await trainOnce(perAgentRewards);
    for (const { score } of episodes) expect(Object.keys(score.agents)).toEqual(['solver', 'verifier']);
  });

  it('turns with rewards of their own, which name their observation', async () => {
    const { episodes } = await trainOnce(perTurnRewards);
    for (const { turns } of episodes) {
      expect(turns.map(({ stepReward }) => stepReward === undefined)).toEqual(
        [true, false, false].slice(0, turns.length),
      );
      expect(turns[1]?.observation).toMatch(/^judges /);
    }
  });

  it('six calls, three of them at once', async () => {
    const { episodes } = await trainOnce(concurrentCalls);
    const order = ['solver', 'solver', 'solver', 'verifier', 'verifier', 'verifier'];
    for (const { turns } of episodes) expect(turns.map(({ agent }) => agent)).toEqual(order);
  });

  it('a tool of an MCP server', async () => {
    const { events, episodes } = await trainAnew(mcp, ['warmStart.steps=40']);
    expect(events.some(({ type }) => type === 'episode.failed')).toBe(false);
    const [tool] = episodes[0]?.turns[0]?.tools ?? [];
    expect(tool).toMatchObject({ name: 'price', description: 'The price of a fruit' });
  });

  it('a simulated user, and whose failure it was', async () => {
    const { events, episodes } = await trainOnce(userSimulator);
    expect(episodes.every(({ turns }) => turns.some(({ agent, frozen }) => agent === 'customer' && frozen))).toBe(true);
    const measured = events.flatMap((event) => (event.type === 'step' ? Object.keys(event.metrics ?? {}) : []));
    expect(measured).toContain('customerFails');
  });

  it('a tool whose result the next agent reads', async () => {
    const { episodes } = await trainOnce(withATool);
    for (const { turns } of episodes) expect(turns[1]?.messages.at(-1)?.content).toMatch(/^\d \w+ (?:\d|not .*)$/);
  });
});

describe('the commands for any recipe', () => {
  /** The words of the command of the table that has this text, with its runs below the test's folder. */
  const typed = (text: string, sets: readonly string[]) => {
    const page = readFileSync(join(directory, 'README.md'), 'utf8');
    const commands = [...page.matchAll(/^\| `(?:\w+=\S+ )*npx drmas (.*?)` \|/gm)].flatMap(([, words = '']) => words);
    const [command = ''] = commands.filter((each) => each.includes(text));
    expect(command, text).not.toBe('');
    const words = command.replaceAll('runs/', join(root, 'runs/')).split(' ');
    return [...words, ...sets.flatMap((set) => ['--set', set])];
  };

  it('train adapters on a model that Ollama has on disk', { tags: 'verify' }, async () => {
    const { model, tokenizer, tensors } = await openModelDirectory(nodeFiles, goldenPath('models/qwen2-mini'));
    const models = join(root, 'ollama');
    const digest = `sha256:${'1'.repeat(64)}`;
    const manifests = join(models, 'manifests/registry.ollama.ai/library/smollm2');
    for (const folder of [manifests, join(models, 'blobs')]) mkdirSync(folder, { recursive: true });
    await writeFile(
      join(models, 'blobs', digest.replace(':', '-')),
      ggufOf({ config: model.config, tokenizer, name: 'x' }, tensors.values()),
    );
    const layers = [{ mediaType: 'application/vnd.ollama.image.model', digest }];
    await writeFile(join(manifests, '135m'), JSON.stringify({ layers }));
    const restore = withEnvironment({ OLLAMA_MODELS: models });
    onTestFinished(restore);
    expect((await drmas(typed('doctor', []))).out).toContain('smollm2:135m');
    const trained = await drmas(typed('--model smollm2:135m', [...SHORT, 'model.rank=2', 'warmStart=null']));
    expect(trained).toMatchObject({ code: 0, out: expect.stringContaining('Taking smollm2:135m as Ollama has it') });
  });

  it('begin a run on one machine and finish it on another', { tags: 'verify' }, async () => {
    const s3 = await s3Fake(['bucket']);
    const restore = withEnvironment({
      AWS_ACCESS_KEY_ID: 'AKIDALL',
      AWS_SECRET_ACCESS_KEY: 'secret',
      AWS_PROFILE: undefined,
      AWS_REGION: S3_REGION,
      AWS_ENDPOINT_URL: s3.url,
    });
    onTestFinished(async () => {
      restore();
      await s3.close();
    });
    // With this warm start the solver learns something in each step.
    const warm = ['warmStart.steps=60', 'warmStart.batch=16', 'warmStart.learningRate=0.02'];
    const sets = [...narrow(ownTeam), ...SHORT, ...warm, 'training.steps=6', 'training.checkpointEvery=2'];
    const flags = sets.flatMap((set) => ['--set', set]);
    const undisturbed = ['train', 'examples/own-team.ts', '--run', join(root, 'whole'), ...flags];
    expect((await drmas(undisturbed)).code).toBe(0);

    // The first machine is taken away while it copies its second checkpoint.
    const taken = new AbortController();
    s3.fault = ({ key }) => {
      if (key.includes('step-000004')) taken.abort(new Error('taken away'));
      return taken.signal.aborted ? { status: 403, code: 'AccessDenied' } : undefined;
    };
    const first = await drmas(typed('--run runs/mine --store s3://', sets), { signal: taken.signal });
    expect(first).toMatchObject({ out: expect.stringMatching(/interrupted/) });
    await rename(join(root, 'runs'), join(root, 'gone'));

    useCache(join(root, 'cache of another machine'));
    s3.fault = () => undefined;
    const second = await drmas(typed('--resume --store s3://', sets));
    expect(second).toMatchObject({ code: 0, out: expect.stringContaining('resuming after step 2\n') });
    const weights = (run: string, step = 6) =>
      readFileSync(join(root, run, `checkpoints/step-00000${step}/solver/model.safetensors`));
    expect(weights('runs/mine').equals(weights('whole'))).toBe(true);
    expect(weights('whole', 4).equals(weights('whole'))).toBe(false);

    await rm(join(root, 'runs'), { recursive: true });
    await cp(join(root, 'gone'), join(root, 'runs'), { recursive: true });
    expect(await drmas(typed('resume runs/mine', []))).toMatchObject({
      code: 0,
      out: expect.stringContaining('resuming after step 4\n'),
    });
    expect(weights('runs/mine').equals(weights('whole'))).toBe(true);
  });
});

describe('a run in Weights & Biases', () => {
  /** A program in the place of Python. The suite `trackers` has Python and the package `wandb`. */
  async function standIn(name: string, script: string): Promise<void> {
    const program = join(root, name);
    await writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    onTestFinished(withEnvironment({ WANDB_PYTHON: program }));
  }

  const tracked = tinyDefinition({ use: [wandb] });

  it('sends its events', { tags: 'verify' }, async () => {
    const output = join(root, 'sent.jsonl');
    await standIn('python', `echo "$3 $4" > '${output}'; echo ready; cat >> '${output}'`);
    const { events } = await train(tracked, { run: join(root, 'tracked'), threads: 1 });
    const [first, ...lines] = readFileSync(output, 'utf8').trim().split('\n');
    expect(first).toBe('tracked tiny'); // the names of the run and of the recipe
    const kinds = ['step', 'evaluation', 'warmup'];
    const sent = lines.map((line) => JSON.parse(line)).filter(({ type }) => kinds.includes(type));
    expect(sent.map(({ type, step }) => [type, step])).toEqual(
      events.flatMap((event) => ('step' in event && kinds.includes(event.type) ? [[event.type, event.step]] : [])),
    );
    expect(sent.filter(({ type }) => type === 'step')).toHaveLength(4);
  });

  it('does not begin without the package', async () => {
    await standIn('python-without', 'exit 1');
    const run = join(root, 'not tracked');
    await expect(train(tracked, { run, threads: 1 })).rejects.toThrow('the lines of Python for wandb ended with 1');
    expect(existsSync(join(run, 'episodes'))).toBe(false);
  });
});
