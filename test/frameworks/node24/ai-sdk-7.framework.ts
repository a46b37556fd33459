/** AI SDK 7 as it is on npm plays and trains a team, on the Node that it wants. */
import { generateText, isStepCount, Output, streamText, ToolLoopAgent, tool } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { trainable } from '../../../src/gateway/agents/index.js';
import { playScripted } from '../../../src/runs/testing/play-scripted.js';
import { agent } from '../../../src/teams/team/agent.js';
import { defineTeam } from '../../../src/teams/team/team.js';
import { temporaryRoot } from '../../support/tiny-run.js';
import { aiSdkCells } from '../ai-sdk-cells.js';
import { conformance } from '../conformance.js';
import { BOSS, type DeskPlay, HELPER, LEARNING, lookUp, plainPlay, rises, trainDesk } from '../desk.js';

const root = temporaryRoot();

const t = tool({ inputSchema: z.object({ n: z.number() }), execute: async (input) => lookUp(input) });
const boss = new ToolLoopAgent({
  model: trainable('boss'),
  instructions: BOSS,
  tools: { t },
  stopWhen: isStepCount(20),
});
const helper = new ToolLoopAgent({ model: trainable('helper'), instructions: HELPER });

const play: DeskPlay = async ({ task, signal: abortSignal }) => {
  const { text: answer, steps } = await boss.generate({ prompt: task.question, abortSignal });
  const { text: comment } = await helper.generate({ prompt: answer, abortSignal });
  return { answer, comment, calls: steps.flatMap(({ toolCalls }) => toolCalls).length };
};

describe('a team of AI SDK 7', () => {
  it('is the run that plain calls of agents give, bit for bit', async () => {
    expect(await trainDesk(root, play)).toEqual(await trainDesk(root, plainPlay));
  });

  it('learns', async () => {
    const { rewards, failures } = await trainDesk(root, play, { overrides: LEARNING });
    expect(failures).toEqual([]);
    expect(rises(rewards)).toBe(true);
  });
});

describe('a trainable model before one of version 4', () => {
  it('shows that version, is the agent in an episode and the other model everywhere else', async () => {
    const tokens = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
    const usage = { inputTokens: tokens, outputTokens: { total: 1, text: 1, reasoning: undefined } };
    const finishReason = { unified: 'stop' as const, raw: undefined };
    const otherwise = new MockLanguageModelV4({
      doGenerate: async () => ({ content: [{ type: 'text', text: 'production' }], finishReason, usage, warnings: [] }),
      doStream: async () => ({
        stream: simulateReadableStream({
          chunks: [
            { type: 'text-start', id: '0' },
            { type: 'text-delta', id: '0', delta: 'production' },
            { type: 'text-end', id: '0' },
            { type: 'finish', finishReason, usage },
          ],
        }),
      }),
    });
    const model = trainable('solver', { otherwise });
    expect(model.specificationVersion).toBe('v4');
    const ask = async () => {
      const { text } = await generateText({ model, prompt: 'x' });
      return [text, await streamText({ model, prompt: 'x' }).text];
    };
    expect(await ask()).toEqual(['production', 'production']);
    const team = defineTeam({ task: z.object({}), agents: { solver: agent() }, play: ask, reward: () => 0 });
    expect((await playScripted(team, {}, () => 'trained')).outcome).toEqual(['trained', 'trained']);
  });
});

const functions = { generateText, streamText, tool, ToolLoopAgent, Output, stopAfter: isStepCount };
conformance('AI SDK 7', aiSdkCells(functions as unknown as Parameters<typeof aiSdkCells>[0])); // the types of 6
