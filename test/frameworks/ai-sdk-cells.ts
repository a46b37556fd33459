/** The cells of AI SDK, whose versions 6 and 7 differ in the name of one function. */
import type * as Sdk from 'ai';
import { z } from 'zod';
import type { CellContext, CellPlay } from './conformance.js';

type Functions = Pick<typeof Sdk, 'generateText' | 'streamText' | 'tool' | 'ToolLoopAgent' | 'Output'> & {
  readonly stopAfter: typeof Sdk.stepCountIs;
};

export function aiSdkCells({ generateText, streamText, tool, ToolLoopAgent, Output, stopAfter }: Functions) {
  const stopWhen = stopAfter(5);
  const looking = ({ look }: CellContext) => ({
    look: tool({ inputSchema: z.object({ n: z.number() }), execute: async (input) => look(input) }),
  });
  const ask = ({ task: { question: prompt }, agents, signal: abortSignal }: CellContext) => {
    return { model: agents.boss.model, prompt, abortSignal, stopWhen };
  };
  const withTools: CellPlay = async (context) =>
    (await generateText({ ...ask(context), tools: looking(context) })).text;
  return {
    text: async (context) => (await generateText(ask(context))).text,
    tools: withTools,
    'parallel tools': withTools,
    streaming: async (context) => {
      let text = '';
      for await (const piece of streamText({ ...ask(context), tools: looking(context) }).textStream) text += piece;
      return text;
    },
    'structured output': async (context) => {
      const output = Output.object({ schema: z.object({ ok: z.boolean() }) });
      return (await generateText({ ...ask(context), output })).output;
    },
    'sub-agent': async (context) => {
      const helper = new ToolLoopAgent({ model: context.agents.helper.model, instructions: 'Help' });
      const askHelper = tool({
        inputSchema: z.object({ what: z.string() }),
        execute: async ({ what }, { abortSignal }) =>
          (await helper.generate({ prompt: what, ...(abortSignal && { abortSignal }) })).text,
      });
      return (await generateText({ ...ask(context), tools: { ask: askHelper } })).text;
    },
  } satisfies Partial<Record<string, CellPlay>>;
}
