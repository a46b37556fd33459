// @module-tag verify

import { join } from 'node:path';
import { checkpoint } from '@drmas/engine/model';
import { assistant, type Message, type TaskSource, type Tool, toolResult, user } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import messages, { hinted, team } from '../../examples/messages/recipe.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { expectFirstRatios } from '../support/expectations.js';
import { miniTokenizer, writeMiniQwen3 } from '../support/qwen3-mini.js';
import { filesOf, stepsOf, temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

describe('a tiny random Qwen3 with its real chat template', () => {
  const root = temporaryRoot();
  const look: Tool = { name: 'look', parameters: { type: 'object', properties: {} } };
  const THOUGHTS = ['hm', 'ah'] as const;
  const CALL = '\n</think>\n\n<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>';

  const tasks: TaskSource = {
    name: 'looks',
    load: async () => ({ name: 'looks', size: 8, at: (index) => ({ id: `t${index}`, data: {} }) }),
    // A random model calls nothing: it learns a call by heart, and two things to think before it.
    trace: (random) => ({
      agent: 'looker',
      messages: [user('Look.')],
      tools: [look],
      response: `<think>\n${random.pick(THOUGHTS)}${CALL}`,
    }),
  };

  const team = defineTeam({
    task: z.object({}),
    agents: { looker: agent({ tools: 'hermes', sampling: { maxTokens: 60 } }) },
    async play({ agents: { looker } }) {
      const messages: Message[] = [user('Look.')];
      for (let i = 0; i < 3; i++) {
        const reply = await looker(messages, { tools: [look] });
        const results = reply.toolCalls.map((call) => toolResult(call, `${i}`));
        messages.push(assistant(reply), ...(results.length === 0 ? [user('Well?')] : results));
      }
      return messages.length;
    },
    reward: ({ episode }) => episode.turns.filter(({ reasoning }) => reasoning === 'hm').length,
  });

  it('plays a loop of calls exactly, and learns from it', async () => {
    const directory = join(root, 'qwen3');
    writeMiniQwen3(directory);
    const recipe = tinyRecipe({
      team,
      tasks,
      model: checkpoint(directory),
      warmStart: { steps: 150, batch: 1, learningRate: 1e-2, lossTarget: 0.05 },
      training: { steps: 2, tasksPerStep: 2, groupSize: 4, checkpointEvery: 2 },
      evaluation: { tasks: 1, samples: 1 },
    });
    const run = await trainTiny(root, recipe);
    const tokenizer = miniTokenizer();
    const stored = [1, 2].map((step) => readEpisodes(nodeFiles, run.stepEpisodesPath(step)));
    const episodes = (await Promise.all(stored)).flat();
    const turns = episodes.flatMap((episode) => episode.turns);
    expect(
      turns.filter(({ toolCalls, reasoning }) => toolCalls !== undefined && reasoning === 'hm').length,
    ).toBeGreaterThan(10);
    for (const { turns } of episodes)
      turns.forEach((turn, i) => {
        const before = turns[i - 1];
        if (before === undefined) return;
        const chain = [...before.prompt, ...before.response];
        expect(turn.history).toEqual({ exact: i, byText: 0, byCalls: 0, foreign: 0 });
        if (before.finishReason === 'stop') expect(turn.prompt.slice(0, chain.length)).toEqual(chain);
        const text = tokenizer.decode(turn.prompt.slice(chain.length));
        if (before.toolCalls !== undefined && before.finishReason === 'stop')
          expect(text).toBe(
            `\n<|im_start|>user\n<tool_response>\n${i - 1}\n</tool_response><|im_end|>\n<|im_start|>assistant\n`,
          );
      });
    const steps = await stepsOf(run);
    for (const { agents } of steps) {
      expect(agents.looker).toMatchObject({ history: { foreign: 0 } });
      expectFirstRatios(agents.looker ?? {});
    }
    expect(steps[0]?.agents.looker?.gradientNorm).toBeGreaterThan(0);
    expect(await filesOf(await trainTiny(root, recipe, { threads: 2 }))).toEqual(await filesOf(run));
  });
});

// The laws of the example with learned messages: the inputs of each agent, and that one word is enough.

const things = ['lamp', 'rug', 'vase'] as const;
const words = ['ba', 'di', 'ko'] as const;
const rooms = things.flatMap((left) => things.map((right) => ({ left, right })));

/** The word by which a local agent that takes hints as it was shown gets from its thing to the other. */
const wordFor = (name: 'left' | 'right', thing: (typeof things)[number], other: string) =>
  words.find((word) => hinted(name, thing, word) === other) ?? '';

describe('a hub that sends messages', () => {
  it('can make both locals right in every pair of rooms, with one word for both too', async () => {
    for (const { left, right } of rooms) {
      const [toLeft, toRight] = [wordFor('left', left, right), wordFor('right', right, left)];
      expect(toLeft).toBe(toRight); // what tells one of them the way there tells the other the way back
      for (const [message, hub] of [
        ['private', [toLeft, toRight]],
        ['shared', [toLeft]],
      ] as const) {
        const lines = { hub, left: [right], right: [left] };
        const played = await playScripted(team, { left, right, message }, lines);
        expect(played.score.team).toBe(1);
        expect(played.turns.filter(({ agent }) => agent === 'hub').length).toBe(hub.length);
        const read = (name: string) => played.turns.find(({ agent }) => agent === name)?.messages.at(-1)?.content;
        expect([read('left'), read('right')]).toEqual([`${left}${toLeft}`, `${right}${toRight}`]);
      }
    }
  });

  it('is not called if no agent may speak', async () => {
    const task = { left: 'lamp', right: 'rug', message: 'none' } as const;
    const { turns, score } = await playScripted(team, task, { left: ['rug'], right: ['vase'] });
    expect(turns.map(({ agent, messages }) => [agent, messages.at(-1)?.content])).toEqual([
      ['left', 'lamp'],
      ['right', 'rug'],
    ]);
    expect(score.team).toBe(0.5);
  });

  it('trains from start to end', async () => {
    const overrides = ['warmStart.steps=4', 'training.steps=2', 'training.groupSize=2', 'evaluation.samples=1'];
    const run = await trainTiny(temporaryRoot(), resolveRecipe(messages, { overrides }));
    expect((await stepsOf(run)).map(({ agents }) => Object.keys(agents).sort())).toEqual(
      Array(2).fill(['hub', 'left', 'right']),
    );
  });
});
