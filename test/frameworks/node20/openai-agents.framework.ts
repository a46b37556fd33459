/** OpenAI Agents as it is on npm plays and trains a team: over its own client, and through `aisdk()`. */
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { aisdk } from '@openai/agents-extensions/ai-sdk';
import OpenAI, { type ClientOptions } from 'openai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { boundFetch, trainable } from '../../../src/agents/index.js';
import { temporaryRoot } from '../../support/tiny-run.js';
import { conformance } from '../conformance.js';
import { BOSS, type DeskPlay, HELPER, LEARNING, lookUp, plainPlay, rises, trainDesk } from '../desk.js';
import { openAIAgentsCells } from './openai-agents-cells.js';

const root = temporaryRoot();

const t = tool({
  name: 't',
  description: '',
  parameters: z.object({ n: z.number() }),
  execute: async (input) => lookUp(input),
});

type Model = NonNullable<ConstructorParameters<typeof Agent>[0]['model']>;

/** A play with these models of the agents. */
async function played(runner: Runner, [boss, helper]: readonly [Model, Model], question: string, signal: AbortSignal) {
  const leading = new Agent({ name: 'boss', instructions: BOSS, model: boss, tools: [t] });
  const commenting = new Agent({ name: 'helper', instructions: HELPER, model: helper });
  const options = { signal, maxTurns: 20 };
  const { finalOutput: answer = '', newItems } = await runner.run(leading, question, options);
  const { finalOutput: comment = '' } = await runner.run(commenting, answer, options);
  return { answer, comment, calls: newItems.filter(({ type }) => type === 'tool_call_item').length };
}

type ProviderOptions = NonNullable<ConstructorParameters<typeof OpenAIProvider>[0]>;

function runnerOf(options: ClientOptions): Runner {
  const openAIClient = new OpenAI(options) as unknown as NonNullable<ProviderOptions['openAIClient']>; // CommonJS types
  return new Runner({
    modelProvider: new OpenAIProvider({ openAIClient, useResponses: false }),
    tracingDisabled: true,
  });
}

/** The model's name is the agent's. */
const named: DeskPlay = ({ task, openai, signal }) =>
  played(runnerOf({ ...openai, maxRetries: 0 }), ['boss', 'helper'], task.question, signal);

/** A client that was made before any episode. */
const early = runnerOf({ baseURL: 'http://drmas/v1', apiKey: 'drmas', fetch: boundFetch });
const bound: DeskPlay = ({ task, signal }) => played(early, ['boss', 'helper'], task.question, signal);

const models = [aisdk(trainable('boss')), aisdk(trainable('helper'))] as const;
const runner = new Runner({ tracingDisabled: true });
const throughAiSdk: DeskPlay = ({ task, signal }) => played(runner, models, task.question, signal);

describe('a team of OpenAI Agents', () => {
  it('is the run that plain calls of agents give, bit for bit', async () => {
    const plain = await trainDesk(root, plainPlay);
    expect(await trainDesk(root, named, { threads: 2 })).toEqual(plain);
    expect(await trainDesk(root, bound)).toEqual(plain);
    expect(await trainDesk(root, throughAiSdk)).toEqual(plain);
  });

  it('learns', async () => {
    const { rewards, failures } = await trainDesk(root, named, { overrides: LEARNING });
    expect(failures).toEqual([]);
    expect(rises(rewards)).toBe(true);
  });
});

conformance(
  'OpenAI Agents',
  openAIAgentsCells(({ openai }) => ({
    runner: runnerOf({ ...openai, maxRetries: 0 }),
    boss: 'boss',
    helper: 'helper',
  })),
);

conformance(
  'OpenAI Agents, `aisdk()`',
  openAIAgentsCells(({ agents }) => ({ runner, boss: aisdk(agents.boss.model), helper: aisdk(agents.helper.model) })),
  ['parallel tools'], // it leaves out a text beside calls
);
