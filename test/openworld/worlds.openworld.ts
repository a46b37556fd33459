/** Teams in environments that the real package `openenv` serves on this machine. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { tinyDecoder } from '@drmas/engine/model';
import { assistant, toolResult, user } from '@drmas/engine/nouns';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { openEnv } from '../../src/teams/tasks/worlds/open-env.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { eventsOf, filesOf, stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const environment = await pythonEnvironment({
  name: 'openenv',
  requirements: new URL('requirements.txt', import.meta.url),
  what: 'openenv, textarena, reasoning-gym and verifiers 0.1 (0.6 GB)',
});
const python = 'python' in environment ? environment.python : undefined;
if ('unavailable' in environment)
  console.log(`SKIPPED: the environments of OpenEnv, because ${environment.unavailable}`);

const root = temporaryRoot();

/** The servers, which end with the tests even if one has not begun to listen. */
const children: ReturnType<typeof spawn>[] = [];
afterAll(() => {
  for (const child of children) child.kill();
});

/** Starts the server; resolves to its address. */
async function serve(): Promise<string> {
  const words = ['-W', 'ignore', fileURLToPath(new URL('worlds.py', import.meta.url)), join(root, 'imported')];
  const child = spawn(python ?? '', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const port = await new Promise((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return `http://127.0.0.1:${port}`;
}

/** A tool that the demonstrations call, and its possible arguments, so that a tiny model reaches the rewards. */
const demonstrated: Record<string, { tool: string; field: string; answers: readonly [string, ...string[]] }> = {
  echo: { tool: 'step', field: 'text', answers: ['a', 'b'] },
  textarena: { tool: 'step', field: 'text', answers: ['[1]', '[2]', '[3]', '[4]'] },
  reasoning_gym: { tool: 'step', field: 'text', answers: ['1', '-1', '2', '0'] },
  'mcp-shop': { tool: 'sell', field: 'at', answers: ['1', '2'] },
  verifiers: { tool: 'submit', field: 'completion', answers: ['2', '3', '4', '5'] },
};

function recipeOf(url: string, name: string, overrides: readonly string[] = []) {
  const { tool, field, answers } = demonstrated[name] ?? { tool: 'step', field: 'text', answers: ['a'] };
  const game = openEnv({ url: `${url}/${name}`, tasks: 40, ...(name === 'verifiers' && { splits: { test: 'eval' } }) });
  const team = defineTeam({
    name,
    task: game.task,
    agents: { player: agent({ tools: 'plain', sampling: { maxTokens: 32 }, invalidPenalty: 0.1 }) },
    async play({ task, agents: { player }, signal, log }) {
      const world = await game.open({ task, signal });
      const shown = world.text || JSON.stringify(world.observation.metadata);
      log('shown', shown);
      const messages = [user(shown.slice(-40))];
      while (!world.done && world.steps < 3) {
        const reply = await player(messages, { tools: world.tools, envStep: world.steps });
        const [call] = reply.toolCalls;
        if (call === undefined) break;
        messages.push(assistant(reply), toolResult(call, (await world.call(call)).slice(-40)));
      }
      return world.total;
    },
    reward: ({ outcome }) => ({ correct: outcome }),
  });
  const properties = { [field]: { type: 'string' } };
  const description = tool === 'step' ? { description: 'What the agent says.' } : {};
  const tools = [{ name: tool, ...description, parameters: { type: 'object', properties, required: [field] } }];
  const definition = defineRecipe({
    name,
    team,
    tasks: {
      ...game,
      trace: (random) => {
        const shown = random.pick(['a', 'b']);
        // Some demonstrations of echo repeat the shown letter, or a model this small would not learn to read it.
        const answer = name === 'echo' && random.chance(0.4) ? shown : random.pick(answers);
        return { agent: 'player', tools, messages: [user(shown)], response: `@${tool}(${answer})` };
      },
    },
    model: tinyDecoder({
      width: 24,
      layers: 1,
      heads: 2,
      feedForward: 48,
      context: 1024,
      tokenizer: { type: 'bytes' },
    }),
    warmStart: { steps: 80, batch: 16, learningRate: 1e-2 },
    training: { steps: 2, tasksPerStep: 2, groupSize: 4 },
    policies: { player: { optimizer: { learningRate: 5e-3 } } },
    evaluation: { every: 100, tasks: 2, samples: 1 },
  });
  return resolveRecipe(definition, { overrides });
}

const failuresOf = async (run: Awaited<ReturnType<typeof trainTiny>>) =>
  (await eventsOf(run)).flatMap((event) => (event.type === 'episode.failed' ? [event] : []));

describe.skipIf(python === undefined)('environments of OpenEnv', () => {
  let url: string;
  beforeAll(async () => {
    url = await serve();
  });

  it.each(Object.keys(demonstrated))('%s trains, and the run repeats bit for bit', async (name) => {
    const [first, again] = [
      await trainTiny(root, recipeOf(url, name)),
      await trainTiny(root, recipeOf(url, name), { threads: 2 }),
    ];
    expect(await failuresOf(first)).toEqual([]);
    const steps = await stepsOf(first);
    expect(steps.length).toBe(2);
    expect(steps.every(({ agents }) => agents.player !== undefined)).toBe(true);
    expect(await filesOf(first)).toEqual(await filesOf(again));
  });

  it('echo is learnt: its letter is said more often than in the demonstrations', async () => {
    const more = ['warmStart.steps=160', 'training.steps=25', 'training.tasksPerStep=8', 'training.groupSize=8'];
    const steps = await stepsOf(await trainTiny(root, recipeOf(url, 'echo', more)));
    const rewards = steps.map(({ reward }) => reward?.mean ?? Number.NaN);
    const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    console.log(`reward of echo: ${meanOf(rewards.slice(0, 3)).toFixed(2)} -> ${meanOf(rewards.slice(-3)).toFixed(2)}`);
    expect(meanOf(rewards.slice(-3))).toBeGreaterThan(meanOf(rewards.slice(0, 3)) + 0.15);
  });

  it.each([
    ['echo', true],
    ['textarena', true],
    ['reasoning_gym', true],
    ['verifiers', true],
    ['dice', false],
  ])('%s obeys seeds: %s', async (name, obeys) => {
    const game = openEnv({ url: `${url}/${name}` });
    const { at } = await game.load('train');
    const shown = async (index: number) => {
      const controller = new AbortController();
      const { observation } = await game.open({ task: at(index).data, signal: controller.signal });
      controller.abort();
      return JSON.stringify(observation);
    };
    const worlds = [];
    for (const index of [0, 1, 2, 3, 0, 1, 2, 3]) worlds.push(await shown(index));
    expect(JSON.stringify(worlds.slice(0, 4)) === JSON.stringify(worlds.slice(4))).toBe(obeys);
  });

  it('gives the codes of the protocol, and respects a server with one session', async () => {
    const { signal } = new AbortController();
    const world = await openEnv({ url: `${url}/frail` }).open({ task: { seed: 1 }, signal });
    await expect(world.step({ txt: 'a' })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    await expect(world.step({ text: 'break' })).rejects.toMatchObject({ code: 'EXECUTION_ERROR' });
    expect((await world.step({ text: 'a' })).done).toBe(true);
    expect(await world.state()).toMatchObject({ step_count: 1 });

    const one = openEnv({ url: `${url}/one` });
    const play = async (seed: number) => {
      const controller = new AbortController();
      const { text } = await one.open({ task: { seed }, signal: controller.signal });
      controller.abort();
      return text;
    };
    expect((await Promise.all([1, 2, 3, 4, 5, 6].map(play))).every((text) => /^[ab]$/.test(text))).toBe(true);
  });

  it('ends an episode by name if its world dies', async () => {
    const address = await serve();
    const { signal } = new AbortController();
    const world = await openEnv({ url: `${address}/frail` }).open({ task: { seed: 1 }, signal });
    await expect(world.step({ text: 'die' })).rejects.toMatchObject({ name: 'WorldError', code: 'CLOSED' });
    const gone = openEnv({ url: `${address}/frail` }).open({ task: { seed: 1 }, signal });
    await expect(gone).rejects.toMatchObject({ name: 'WorldError', code: 'UNREACHABLE' });
  });
});
