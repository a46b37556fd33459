/** The cells of OpenAI Agents, with any models of the two agents. */
import type { Agent, Runner, tool } from '@openai/agents';
import { z } from 'zod';
import type { CellContext, CellPlay } from '../conformance.js';

type Model = NonNullable<ConstructorParameters<typeof Agent>[0]['model']>;

export interface Models {
  readonly runner: Runner;
  readonly boss: Model;
  readonly helper: Model;
}

interface Functions {
  readonly Agent: typeof Agent;
  readonly tool: typeof tool;
}

export function openAIAgentsCells({ Agent, tool }: Functions, modelsOf: (context: CellContext) => Models) {
  const ask =
    (more: (context: CellContext, models: Models) => Partial<ConstructorParameters<typeof Agent>[0]>): CellPlay =>
    async (context) => {
      const models = modelsOf(context);
      const boss = new Agent({ name: 'boss', model: models.boss, ...more(context, models) });
      return (await models.runner.run(boss, context.task.question, { signal: context.signal })).finalOutput;
    };
  const looking = ({ look }: CellContext) => ({
    tools: [
      tool({
        name: 'look',
        description: '',
        parameters: z.object({ n: z.number() }),
        execute: async (input) => look(input),
      }),
    ],
  });
  const helperOf = ({ helper }: Models) => new Agent({ name: 'helper', instructions: 'Help', model: helper });
  return {
    text: ask(() => ({})),
    tools: ask(looking),
    'parallel tools': ask(looking),
    streaming: async (context) => {
      const { runner, boss: model } = modelsOf(context);
      const boss = new Agent({ name: 'boss', model, ...looking(context) });
      const run = await runner.run(boss, context.task.question, { signal: context.signal, stream: true });
      let text = '';
      for await (const piece of run.toTextStream()) text += piece;
      await run.completed;
      return text;
    },
    'structured output': ask(() => ({ outputType: z.object({ ok: z.boolean() }) as never })),
    handoff: ask((_, models) => ({ handoffs: [helperOf(models)] })),
    'sub-agent': ask((_, models) => ({
      tools: [helperOf(models).asTool({ toolName: 'ask', toolDescription: '' })],
    })),
  } satisfies Record<string, CellPlay>;
}
