/** VoltAgent as it is on npm plays and trains a team. */
import { Output } from 'ai';
import { z } from 'zod';
import { trainable } from '../../../src/gateway/agents/index.js';
import { temporaryRoot } from '../../support/tiny-run.js';
import { type CellContext, type CellPlay, conformance } from '../conformance.js';
import { BOSS, type DeskPlay, HELPER, lookUp, testWithoutEmptyMessages } from '../desk.js';

// Elsewhere than in production it asks a server for the list of all models as soon as it is imported.
const before = process.env.NODE_ENV;
process.env.NODE_ENV = 'production';
const { Agent, createTool } = await import('@voltagent/core');
process.env.NODE_ENV = before;

const root = temporaryRoot();

type Tools = NonNullable<ConstructorParameters<typeof Agent>[0]['tools']>;

/** An agent of VoltAgent that is an agent of the team. */
const agentOf = (name: string, instructions: string, tools: Tools = []) =>
  new Agent({ name, instructions, model: trainable(name) as never, tools, memory: false, maxRetries: 0 });

const numberTool = (name: string, run: CellContext['look']) =>
  createTool({
    name,
    description: 'Doubles.',
    parameters: z.object({ n: z.number() }),
    execute: async (input) => run(input),
  });

const boss = agentOf(BOSS, BOSS, [numberTool('t', lookUp)]);
const helper = agentOf(HELPER, HELPER);

const play: DeskPlay = async ({ task, signal: abortSignal }) => {
  const { text: answer, steps } = await boss.generateText(task.question, { maxSteps: 20, abortSignal });
  const { text: comment } = await helper.generateText(answer, { abortSignal });
  return { answer, comment, calls: steps.flatMap(({ toolCalls }) => toolCalls).length };
};

testWithoutEmptyMessages('VoltAgent', root, play);

const withTools: CellPlay = async ({ task, look }) =>
  (await agentOf('boss', 'Lead', [numberTool('look', look)]).generateText(task.question)).text;

conformance('VoltAgent', {
  text: async ({ task }) => (await agentOf('boss', 'Lead').generateText(task.question)).text,
  tools: withTools,
  'parallel tools': withTools,
  streaming: async ({ task, look }) => {
    const { textStream } = await agentOf('boss', 'Lead', [numberTool('look', look)]).streamText(task.question);
    let text = '';
    for await (const piece of textStream) text += piece;
    return text;
  },
  'structured output': async ({ task }) => {
    const output = Output.object({ schema: z.object({ ok: z.boolean() }) });
    return (await agentOf('boss', 'Lead').generateText(task.question, { output })).output;
  },
  'sub-agent': async ({ task }) => {
    const ask = createTool({
      name: 'ask',
      description: 'Asks the helper.',
      parameters: z.object({ what: z.string() }),
      execute: async ({ what }) => (await agentOf('helper', 'Help').generateText(what)).text,
    });
    return (await agentOf('boss', 'Lead', [ask]).generateText(task.question)).text;
  },
});
