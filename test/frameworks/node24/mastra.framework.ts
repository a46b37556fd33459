/** Mastra as it is on npm plays and trains a team, on the Node that it wants. */
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { trainable } from '../../../src/gateway/agents/index.js';
import { temporaryRoot } from '../../support/tiny-run.js';
import { type CellContext, type CellPlay, conformance } from '../conformance.js';
import { BOSS, type DeskPlay, exampleTrains, HELPER, lookUp, testWithoutEmptyMessages } from '../desk.js';

const root = temporaryRoot();

type Fields = ConstructorParameters<typeof Agent>[0];

/** An agent of Mastra that is an agent of the team. */
const agentOf = (name: string, instructions: string, tools?: Fields['tools']) =>
  new Agent({ id: name, name, instructions, model: trainable(name) as never, ...(tools && { tools }) });

const lookingWith = (look: CellContext['look']) =>
  createTool({
    id: 'look',
    description: '',
    inputSchema: z.object({ n: z.number() }),
    execute: async (input) => look(input as { n: number }),
  });

const t = createTool({
  id: 't',
  description: '',
  inputSchema: z.object({ n: z.number() }),
  execute: async (input) => lookUp(input as { n: number }),
});
/** The text of the last step: Mastra's own `text` joins the texts of all steps. */
const lastText = ({ steps }: { readonly steps: readonly { readonly text: string }[] }) => steps.at(-1)?.text ?? '';

const boss = agentOf(BOSS, BOSS, { t });
const helper = agentOf(HELPER, HELPER);

const play: DeskPlay = async ({ task, signal: abortSignal }) => {
  const led = await boss.generate(task.question, { maxSteps: 20, abortSignal });
  const answer = lastText(led);
  const { text: comment } = await helper.generate(answer, { abortSignal });
  return { answer, comment, calls: led.steps.flatMap(({ toolCalls }) => toolCalls).length };
};

testWithoutEmptyMessages('Mastra', root, play);

exampleTrains('mastra', import.meta.dirname, ['@mastra/core']);

const withTools: CellPlay = async ({ task, look }) =>
  lastText(await agentOf('boss', 'Lead', { look: lookingWith(look) }).generate(task.question));

conformance('Mastra', {
  text: async ({ task }) => (await agentOf('boss', 'Lead').generate(task.question)).text,
  tools: withTools,
  'parallel tools': withTools,
  streaming: async ({ task, look }) => {
    const { textStream } = await agentOf('boss', 'Lead', { look: lookingWith(look) }).stream(task.question);
    let text = '';
    for await (const piece of textStream) text += piece;
    return text;
  },
  'structured output': async ({ task }) => {
    const structuredOutput = { schema: z.object({ ok: z.boolean() }) };
    return (await agentOf('boss', 'Lead').generate(task.question, { structuredOutput })).object;
  },
  'sub-agent': async ({ task }) => {
    const ask = createTool({
      id: 'ask',
      description: '',
      inputSchema: z.object({ what: z.string() }),
      execute: async (input) => (await agentOf('helper', 'Help').generate((input as { what: string }).what)).text,
    });
    return (await agentOf('boss', 'Lead', { ask }).generate(task.question)).text;
  },
});
