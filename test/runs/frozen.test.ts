// @module-tag verify
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EmbeddedBackend } from '@drmas/engine/embedded';
import { EndpointError } from '@drmas/engine/errors';
import type { EvaluationEvent, RunEvent, Step } from '@drmas/engine/events';
import { checkpoint } from '@drmas/engine/model';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { frozen } from '../../src/method/recipe/frozen.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { evaluate, resume, train } from '../../src/runs/run/api.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { ablate } from '../../src/runs/studies/ablation/ablate.js';
import { collectLog } from '../../src/runs/studies/inspect/collect-turns.js';
import { inspect } from '../../src/runs/studies/inspect/inspect-log.js';
import { probeRecipe } from '../../src/runs/studies/plan/probe/probe-recipe.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { chatServer, refuse, say } from '../support/chat-server.js';
import {
  createRun,
  digitTeam,
  eventsOf,
  filesOf,
  temporaryRoot,
  tinyDefinition,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();
const model = tinyModel;
const stepsOf = (events: readonly { type: string }[]) => events.filter((event): event is Step => event.type === 'step');
const hashOf = async (run: RunDirectory, name: string) => (await filesOf(run))[name];

describe('a frozen judge that the reward asks', () => {
  const { play: _, ...team } = digitTeam;
  const recipe = tinyRecipe({
    team: defineTeam({
      ...team,
      play: async ({ task, agents: { solver } }) => ({ text: (await solver(task.question)).text }),
      reward: async ({ outcome: { text }, agents: { verifier } }) => {
        const [first, second] = await Promise.all([verifier(text), verifier(text)]);
        return first.text.length + 2 * second.text.length;
      },
    }),
    assign: { solver: 'solver', verifier: frozen(model) },
  });

  it('is recorded, counted and never trained, and the run repeats bit for bit at any number of threads', async () => {
    const run = await trainTiny(root, recipe, { threads: 1 });
    for (const { agents, tokens } of stepsOf(await eventsOf(run))) {
      expect(agents.verifier).toMatchObject({ frozen: true, gradientNorm: 0 });
      expect(agents.verifier?.turns).toBe(2 * (agents.solver?.turns ?? 0));
      const written = Object.values(agents).reduce((sum, of) => sum + of.turns * (of.responseTokens ?? 0), 0);
      expect(tokens.sampled).toBeCloseTo(written);
    }
    for (const { turns } of await readEpisodes(nodeFiles, run.stepEpisodesPath(2)))
      expect(turns.map(({ judging, advantage }) => [judging, advantage === undefined])).toEqual([
        [undefined, false],
        [true, true],
        [true, true],
      ]);
    const again = await trainTiny(root, recipe, { threads: 2 });
    expect(await eventsOf(again)).toEqual(await eventsOf(run));
    expect(await filesOf(again)).toEqual(await filesOf(run));
  });
});

describe('an agent on a frozen model', () => {
  const recipe = tinyRecipe({ assign: { solver: 'solver', verifier: frozen(model) } });

  it('plays as the warm start left it, and never trains', async () => {
    const run = await trainTiny(root, recipe);
    const names = Object.keys(await filesOf(run)).filter((name) => name.includes('verifier'));
    expect(names).toEqual([
      'checkpoints/step-000002/verifier/model.safetensors',
      'checkpoints/step-000004/verifier/model.safetensors',
    ]);
    const [first, last] = await Promise.all(names.map((name) => hashOf(run, name)));
    expect(last).toBe(first);
    expect(await hashOf(run, names[0]?.replace('verifier', 'solver') ?? '')).not.toBe(first);
    const events = await eventsOf(run);
    expect(events[0]).toMatchObject({ parameters: { solver: expect.any(Number) } });
    expect(Object.keys((events[0] as { parameters: object }).parameters)).toEqual(['solver']);
    for (const { agents, policies } of stepsOf(events)) {
      expect(Object.keys(policies)).toEqual(['solver']);
      expect(agents.solver).not.toHaveProperty('frozen');
      expect(agents.verifier).toMatchObject({
        frozen: true,
        gradientNorm: 0,
        maxAbsAdvantage: 0,
      });
      expect(agents.verifier).not.toHaveProperty('maxRatioDeviation'); // nothing of it was updated
      expect(agents.verifier?.turns).toBeGreaterThan(0);
      expect(agents.verifier?.responseTokens).toBeGreaterThan(0);
      expect(agents.solver?.maxRatioDeviation).toBe(0);
    }
    for (const episode of await readEpisodes(nodeFiles, run.stepEpisodesPath(2)))
      for (const turn of episode.turns) {
        const isFrozen = turn.agent === 'verifier';
        expect([turn.frozen, 'advantage' in turn, turn.policyVersion]).toEqual(
          isFrozen ? [true, false, 0] : [undefined, true, 1],
        );
      }
  });

  it('goes on from a checkpoint bit for bit, at any number of threads', async () => {
    const whole = await trainTiny(root, recipe, { threads: 2 });
    const { path } = await createRun(root, recipe);
    const controller = new AbortController();
    const event = ({ type }: RunEvent) => void (type === 'checkpoint' && controller.abort(new Error('enough')));
    const first = await RunDirectory.open(path, { listeners: [{ event }] });
    await expect(executeRun(recipe, first, nodeHost({ threads: 1, signal: controller.signal }))).rejects.toThrow(
      'enough',
    );
    const run = await RunDirectory.open(path);
    const from = await run.latestCheckpoint();
    await run.rewind(from);
    await executeRun(recipe, run, nodeHost({ threads: 1 }), { checkpoint: from });
    expect(await eventsOf(run)).toEqual(await eventsOf(whole));
    expect(await filesOf(run)).toMatchObject(await filesOf(whole));
  });

  it('needs no room in checkpoints where its weights lie elsewhere, and is one for agents with equal models', async () => {
    const trained = await trainTiny(root, tinyRecipe());
    const directory = join(trained.path, 'checkpoints', 'step-000004', 'verifier');
    const open = vi.spyOn(EmbeddedBackend.prototype, 'open');
    onTestFinished(() => open.mockRestore());
    const agents = { ...digitTeam.agents, critic: digitTeam.agents.verifier };
    const team = { ...digitTeam, agents } as typeof digitTeam;
    const judge = frozen(checkpoint(directory));
    const given = tinyDefinition({ team, assign: { solver: 'one', verifier: judge, critic: judge } as never });
    const { run, events } = await train(given, { run: join(root, 'given'), threads: 1, set: ['training.steps=2'] });
    expect(open.mock.calls.map(([, , name]) => name).sort()).toEqual(['one', 'verifier']);
    expect(events.at(-1)).toMatchObject({ reason: 'completed' });
    expect(await readdir(join(run, 'checkpoints', 'step-000002'))).toEqual([
      'cursor.json',
      'digests.json',
      'one',
      'state.json',
    ]);
    const event = await evaluate(run, { recipe: given, threads: 1, tasks: 3, samples: 2 });
    const last = events.findLast((known): known is EvaluationEvent & RunEvent => known.type === 'evaluation');
    expect(event.averageAtK).toBe(last?.averageAtK);
  });
});

describe('an agent behind an endpoint', () => {
  const secret = 'sk-test-of-a-secret';
  beforeEach(() => void vi.stubEnv('OPENAI_API_KEY', secret));
  afterEach(() => void vi.unstubAllEnvs());

  /** Approves of every other answer; counts its tokens as 7. */
  const judge = () =>
    chatServer((_, response, index) =>
      say(response, index % 3 === 0 ? '<reject>' : index % 3 === 1 ? '<approve>' : '7'),
    );
  const definition = (url: string, options: object = {}) =>
    tinyDefinition({ assign: { solver: 'solver', verifier: frozen({ url, model: 'judge-1', ...options }) } });

  it('plays in training and evaluation, and nothing is learnt from its turns', async () => {
    const { requests, url } = await judge();
    const notices: string[] = [];
    const { run, events } = await train(definition(url), {
      run: join(root, 'endpoint'),
      threads: 1,
      onNotice: (message) => notices.push(message),
    });
    expect(requests.length).toBeGreaterThan(4 * 8);
    expect(requests[0]?.headers.authorization).toBe(`Bearer ${secret}`);
    expect(requests[0]?.body).toMatchObject({ model: 'judge-1', temperature: 1, max_tokens: 2 });
    expect(requests[0]?.body.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant']);
    expect(new Set(requests.map(({ body }) => body.seed)).size).toBe(requests.length);
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'warning',
        code: 'endpoint.nondeterministic',
        message: expect.stringContaining(url),
      }),
    );
    for (const { agents, tokens } of stepsOf(events)) {
      expect(agents.verifier).toMatchObject({ frozen: true, responseTokens: 7, gradientNorm: 0 });
      expect(agents.verifier?.invalid).toBeGreaterThan(0);
      const { turns = 0, responseTokens = 0 } = agents.solver ?? {};
      expect(tokens.sampled).toBeCloseTo(turns * responseTokens, 6);
    }
    const evaluation = events.find((event): event is EvaluationEvent & RunEvent => event.type === 'evaluation');
    expect(evaluation?.agents.verifier).toMatchObject({ responseTokens: 7, callsPerEpisode: 1 });
    const episodes = await readEpisodes(nodeFiles, (await RunDirectory.open(run)).stepEpisodesPath(1));
    const verdicts = episodes.flatMap(({ turns }) => turns.filter(({ agent }) => agent === 'verifier'));
    expect(verdicts).toHaveLength(8);
    for (const turn of verdicts) {
      expect(turn).toMatchObject({ frozen: true, prompt: [], response: [], logprobs: [] });
      expect(turn.endpoint).toEqual({ promptTokens: 11, responseTokens: 7 });
      expect(turn).not.toHaveProperty('advantage');
    }
    expect(await readdir(join(run, 'checkpoints', 'step-000004'))).toEqual([
      'cursor.json',
      'digests.json',
      'solver',
      'state.json',
    ]);
    const log = await collectLog([(await RunDirectory.open(run)).stepEpisodesPath(1)]);
    expect(Object.keys(inspect(log).agents)).toEqual(['solver']);
  });

  it('leaves no key in any file, be it of the environment or of the recipe', async () => {
    const { requests, url } = await judge();
    const apiKey = 'sk-other-secret';
    const { run } = await train(definition(url, { apiKey }), {
      run: join(root, 'keys'),
      set: ['training.steps=1'],
    });
    expect(requests[0]?.headers.authorization).toBe(`Bearer ${apiKey}`);
    const names = await readdir(run, { recursive: true, withFileTypes: true });
    const files = names.filter((entry) => entry.isFile() && /\.jsonl?$/.test(entry.name));
    const texts = await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8')));
    expect(texts.join('')).toContain(url);
    expect(texts.join('')).not.toMatch(/sk-|apiKey/);
  });

  it('is called after a resume, an evaluation, a probe, and in an ablation', async () => {
    const { requests, url } = await judge();
    const recipe = definition(url);
    const path = join(root, 'again');
    const controller = new AbortController();
    const write = ({ type }: RunEvent) => type === 'step' && controller.abort(new Error('enough'));
    await expect(train(recipe, { run: path, sinks: [{ write }], signal: controller.signal })).rejects.toThrow('enough');
    const { events } = await resume(path, recipe, { threads: 1 });
    expect(stepsOf(events).map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    expect(events.filter(({ type }) => type === 'warning')).toHaveLength(1);
    const before = requests.length;
    await evaluate(path, { recipe, tasks: 2, samples: 2, threads: 1 });
    expect(requests.length - before).toBe(4);
    const changes = { assign: { solver: 'solver', verifier: frozen({ url, model: 'judge-1' }) } };
    const report = await probeRecipe(tinyRecipe(changes), nodeHost({ threads: 1 }), { tasks: 2 });
    expect(Object.keys(report.agents)).toEqual(['solver', 'verifier']);
    expect(Object.keys(report.estimators.drmas ?? {})).toEqual(['solver']);
    const { runs } = await ablate(recipe, {
      vary: { 'advantage.type': ['grpo', 'drmas'] },
      seeds: 1,
      set: ['training.steps=1'],
      run: join(root, 'ablation'),
      threads: 1,
    });
    expect(runs.map(({ status, agents }) => [status, Object.keys(agents)])).toEqual([
      ['completed', ['solver']],
      ['completed', ['solver']],
    ]);
  });

  it('that fails now and then costs episodes, and one that refuses us the run', async () => {
    const flaky = await chatServer((_, response, index) =>
      index % 10 === 3 ? refuse(response, 400, 'not today') : say(response, '<approve>'),
    );
    const { events } = await train(definition(flaky.url), { run: join(root, 'flaky'), threads: 1 });
    const failures = events.filter((event) => event.type === 'episode.failed');
    expect(failures.length).toBeGreaterThan(0);
    expect(failures[0]).toMatchObject({ reason: 'backend', message: expect.stringContaining('400 not today') });
    expect(events.at(-1)).toMatchObject({ reason: 'completed' });

    const closed = await chatServer((_, response) => refuse(response, 401, 'who are you?'));
    const run = join(root, 'refused');
    const error = await train(definition(closed.url), { run, threads: 1 }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(EndpointError);
    expect(error).toMatchObject({ exitCode: 1, message: expect.stringContaining('401 who are you?') });
    expect((await (await RunDirectory.open(run)).events()).at(-1)).toMatchObject({ reason: 'failed' });
  });

  it('that hangs ends with the run', async () => {
    const silent = await chatServer(() => controller.abort(reason));
    const controller = new AbortController();
    const reason = new Error('interrupted');
    const run = train(definition(silent.url), { run: join(root, 'hung'), threads: 1, signal: controller.signal });
    await expect(run).rejects.toBe(reason);
  });
});
