/** AI SDK 7 as it is on npm plays and trains a team, on the Node that it wants. */
import { generateText, isStepCount, Output, streamText, ToolLoopAgent, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { trainable } from '../../../src/agents/index.js';
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

const functions = { generateText, streamText, tool, ToolLoopAgent, Output, stopAfter: isStepCount };
conformance('AI SDK 7', aiSdkCells(functions as unknown as Parameters<typeof aiSdkCells>[0])); // the types of 6
