// @module-tag verify
/** A team of AI SDK 6 on a tiny random Qwen3 with its real chat template: thinking, calls, exact histories. */
import { join } from 'node:path';
import { given } from '@drmas/engine/errors';
import { checkpoint } from '@drmas/engine/model';
import { assistant, type Message, type TaskSource, type Tool, toolResult, user } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { generateText, jsonSchema, stepCountIs, ToolLoopAgent, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { trainable } from '../../src/gateway/agents/index.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam, type PlayContext } from '../../src/teams/team/team.js';
import { expectFirstRatios } from '../support/expectations.js';
import { writeMiniQwen3 } from '../support/qwen3-mini.js';
import { filesOf, stepsOf, temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const ROUNDS = 3;

const agents = {
  looker: agent({ tools: 'hermes', sampling: { maxTokens: 60 } }),
  judge: agent({ sampling: { maxTokens: 20 } }),
};
type Play = (context: PlayContext<object, typeof agents>) => Promise<string>;

const look: Tool = { name: 'look', parameters: { type: 'object', properties: {} } };
const seen = () => '14';

/** The loop as AI SDK runs it, from files that know nothing of episodes. */
const looker = new ToolLoopAgent({
  model: trainable('looker'),
  tools: { look: tool({ inputSchema: jsonSchema(look.parameters), execute: async () => seen() }) },
  stopWhen: stepCountIs(ROUNDS),
});
const withAiSdk: Play = async () => {
  const { text } = await looker.generate({ prompt: 'Look.' });
  return (await generateText({ model: trainable('judge'), prompt: `Well? ${text}` })).text;
};

/** The same with agents as functions. */
const plainly: Play = async ({ agents: { looker, judge } }) => {
  const messages: Message[] = [user('Look.')];
  for (let round = 1; ; round++) {
    const reply = await looker(messages, { tools: [look] });
    if (reply.toolCalls.length > 0 && round < ROUNDS) {
      const results = reply.toolCalls.map((call) => toolResult(call, seen()));
      const { role, content, ...others } = assistant(reply);
      // AI SDK sends the thinking back.
      messages.push({ role, content, ...given({ reasoning: reply.reasoning }), ...others }, ...results);
    } else return (await judge(`Well? ${reply.content}`)).content;
  }
};

const tasks: TaskSource<object> = {
  name: 'looks',
  load: async () => ({ name: 'looks', size: 8, at: (index) => ({ id: `t${index}`, data: {} }) }),
  // A random model calls nothing: it learns a call by heart, and two things to think before it.
  trace: (random) => ({
    agent: 'looker',
    messages: [user('Look.')],
    tools: [look],
    response: `<think>\n${random.pick(['hm', 'ah'])}\n</think>\n\n<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>`,
  }),
};

const recipeOf = (play: Play, directory: string) =>
  tinyRecipe({
    team: defineTeam({
      name: 'looks',
      task: z.object({}),
      agents,
      play,
      reward: ({ episode }) => episode.turns.filter(({ reasoning }) => reasoning === 'hm').length,
    }),
    tasks,
    model: checkpoint(directory),
    warmStart: { steps: 300, batch: 1, learningRate: 1e-2, lossTarget: 0.03 },
    training: { steps: 2, tasksPerStep: 2, groupSize: 4, checkpointEvery: 2 },
    evaluation: { tasks: 1, samples: 1 },
  });

describe('a team of AI SDK 6 on a tiny random Qwen3 with its real chat template', () => {
  it('calls tools, reads its turns with the very ids that were sampled, and is trained as in plain play', async () => {
    const directory = join(root, 'qwen3');
    writeMiniQwen3(directory);
    const run = await trainTiny(root, recipeOf(withAiSdk, directory), { threads: 2 });
    const stored = [1, 2].map((step) => readEpisodes(nodeFiles, run.stepEpisodesPath(step)));
    const episodes = (await Promise.all(stored)).flat();
    expect(episodes.flatMap(({ failure }) => failure ?? [])).toEqual([]);
    const calls = episodes.flatMap(({ turns }) => turns.filter(({ toolCalls }) => toolCalls !== undefined));
    expect(calls.length).toBeGreaterThan(10);
    expect(calls.filter(({ reasoning }) => reasoning === 'hm').length).toBeGreaterThan(3);
    for (const { turns } of episodes) {
      const looks = turns.filter(({ agent }) => agent === 'looker');
      expect(turns.at(-1)?.agent).toBe('judge');
      looks.forEach((turn, i) => {
        expect(turn.history ?? { exact: 0 }).toMatchObject({ exact: i });
        const before = looks[i - 1];
        if (before === undefined) return;
        const read = [...before.prompt, ...before.response];
        expect(turn.prompt.slice(0, read.length)).toEqual(read);
      });
    }
    for (const { agents } of await stepsOf(run)) {
      expect(agents.looker).toMatchObject({ history: { byText: 0, foreign: 0 } });
      expectFirstRatios(agents.looker ?? {});
      expect(agents.looker?.gradientNorm).toBeGreaterThan(0);
    }
    expect(await filesOf(run)).toEqual(await filesOf(await trainTiny(root, recipeOf(plainly, directory))));
  });
});
