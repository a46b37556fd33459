/**
 * LangGraph as it is on npm plays and trains a team, with a graph that is compiled once. LangChain's client in unusual
 * cases.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type StructuredToolInterface, tool } from '@langchain/core/tools';
import { Command, END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { boundFetch } from '../../../src/gateway/agents/index.js';
import { drmas } from '../../support/command-line.js';
import { LANGGRAPH_FILE } from '../../support/langgraph-file.js';
import { temporaryRoot } from '../../support/tiny-run.js';
import { clientContract } from '../client-contract.js';
import { type CellContext, conformance } from '../conformance.js';
import { BOSS, type DeskPlay, exampleTrains, HELPER, LEARNING, lookUp, plainPlay, rises, trainDesk } from '../desk.js';

const root = temporaryRoot();

const t = tool(async (input: { n: number }) => lookUp(input), {
  name: 't',
  description: '',
  schema: z.object({ n: z.number() }),
});

const connection: ChatOpenAIFields = {
  apiKey: 'drmas',
  maxRetries: 0,
  configuration: { baseURL: 'http://drmas/v1', fetch: boundFetch },
};
const llm = (model: string) => new ChatOpenAI({ ...connection, model, streaming: false });
const [boss, helper] = [llm('boss').bindTools([t]), llm('helper')];

const graph = new StateGraph(MessagesAnnotation)
  .addNode('boss', async ({ messages }) => ({
    messages: [await boss.invoke([{ role: 'system', content: BOSS }, ...messages])],
  }))
  .addNode('tools', new ToolNode([t]))
  .addNode('helper', async ({ messages }) => ({
    messages: [
      await helper.invoke([
        { role: 'system', content: HELPER },
        { role: 'user', content: textOf(messages) },
      ]),
    ],
  }))
  .addEdge(START, 'boss')
  .addConditionalEdges('boss', toolsCondition, { tools: 'tools', [END]: 'helper' })
  .addEdge('tools', 'boss')
  .addEdge('helper', END)
  .compile();

const textOf = (messages: (typeof MessagesAnnotation.State)['messages']) => messages.at(-1)?.text ?? '';

const play: DeskPlay = async ({ task, signal }) => {
  const messages = [{ role: 'user', content: task.question }];
  const { messages: all } = await graph.invoke({ messages }, { signal, recursionLimit: 50 });
  return {
    answer: textOf(all.slice(0, -1)),
    comment: textOf(all),
    calls: all.filter((message) => message.getType() === 'tool').length,
  };
};

exampleTrains('langgraph', import.meta.dirname, ['@langchain/core', '@langchain/langgraph', '@langchain/openai']);

describe('the recipe that `drmas init --from` writes around a graph', () => {
  const there = join(import.meta.dirname, 'around-graph'); // imports find the packages of the folder above
  afterEach(() => rm(there, { recursive: true, force: true }));

  it('plays the graph', async () => {
    await mkdir(there);
    const task = (n: number) => `{"question": "${n}", "answer": "done"}\n`;
    const answers = "export default ({ agent }) => (agent === 'planner' ? 'kind' : 'done');\n";
    const files = { 'graph.ts': LANGGRAPH_FILE, 'answers.mjs': answers };
    for (const [name, text] of Object.entries(files)) await writeFile(join(there, name), text);
    await writeFile(join(there, 'tasks.jsonl'), [1, 2, 3, 4, 5, 6, 7, 8].map(task).join(''));
    expect(await drmas(['init', there, '--from', join(there, 'graph.ts')])).toMatchObject({ code: 0 });
    const out = join(there, 'demonstrations.jsonl');
    const words = ['--script', join(there, 'answers.mjs'), '--tasks', '2', '--min-score', '1', '--out', out];
    expect(await drmas(['demonstrate', join(there, 'recipe.ts'), ...words])).toMatchObject({ code: 0 });
    const agents = (await readFile(out, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).agent);
    expect(agents).toEqual(['planner', 'worker', 'planner', 'worker']);
  });
});

describe('a team of LangGraph', () => {
  it('is the run that plain calls of agents give, bit for bit, at any number of threads', async () => {
    const plain = await trainDesk(root, plainPlay);
    expect(await trainDesk(root, play)).toEqual(plain);
    expect(await trainDesk(root, play, { threads: 2 })).toEqual(plain);
  });

  it('learns', async () => {
    const { rewards, failures } = await trainDesk(root, play, { overrides: LEARNING });
    expect(failures).toEqual([]);
    expect(rises(rewards)).toBe(true);
  });
});

conformance(
  'LangGraph',
  {
    text: async ({ task }) => textOf([await llm('boss').invoke(task.question)]),
    tools: (context) => loop(context),
    'parallel tools': (context) => loop(context),
    streaming: async (context) => {
      let text = '';
      const options = { signal: context.signal, streamMode: 'messages' as const };
      for await (const [piece] of await loopOf(context).stream(question(context), options))
        if (piece.getType() === 'ai') text += piece.text;
      return text;
    },
    'structured output': async ({ task }) => {
      const schema = z.object({ ok: z.boolean() });
      return llm('boss').withStructuredOutput(schema, { method: 'jsonSchema' }).invoke(task.question);
    },
    handoff: async ({ task }) => {
      const transfer = tool(() => new Command({ goto: 'helper', graph: Command.PARENT }), {
        name: 'transfer_to_helper',
        description: '',
        schema: z.object({}),
      });
      const leading = new StateGraph(MessagesAnnotation)
        .addNode('boss', async ({ messages }) => ({
          messages: [await llm('boss').bindTools([transfer]).invoke(messages)],
        }))
        .addNode('tools', new ToolNode([transfer]))
        .addEdge(START, 'boss')
        .addEdge('boss', 'tools')
        .compile();
      const team = new StateGraph(MessagesAnnotation)
        .addNode('leading', leading, { ends: ['helper'] })
        .addNode('helper', async () => ({ messages: [await helper.invoke(task.question)] }))
        .addEdge(START, 'leading')
        .addEdge('helper', END)
        .compile();
      const { messages } = await team.invoke({ messages: [{ role: 'user', content: task.question }] });
      return textOf(messages);
    },
    'sub-agent': (context) => {
      const ask = tool(async ({ what }: { what: string }) => textOf([await helper.invoke(what)]), {
        name: 'ask',
        description: '',
        schema: z.object({ what: z.string() }),
      });
      return loop(context, ask);
    },
  },
  { throwsAtLimit: true },
);

/** A graph of one agent that calls a tool as often as it likes, and streams if its caller streams. */
function loopOf({ look }: CellContext, other?: StructuredToolInterface) {
  const looking = tool(async (input: { n: number }) => look(input), {
    name: 'look',
    description: '',
    schema: z.object({ n: z.number() }),
  });
  const tools = [other ?? looking];
  const model = new ChatOpenAI({ ...connection, model: 'boss' }).bindTools(tools);
  return new StateGraph(MessagesAnnotation)
    .addNode('boss', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'boss')
    .addConditionalEdges('boss', toolsCondition)
    .addEdge('tools', 'boss')
    .compile();
}

const question = ({ task }: CellContext) => ({ messages: [{ role: 'user', content: task.question }] });

async function loop(context: CellContext, other?: StructuredToolInterface) {
  const { messages } = await loopOf(context, other).invoke(question(context), { signal: context.signal });
  return textOf(messages);
}

clientContract('LangChain', async ({ model, apiKey, ...configuration }, { stream, signal }) => {
  const llm = new ChatOpenAI({ model, apiKey, configuration, streaming: false });
  const options = signal === undefined ? {} : { signal };
  if (!stream) return (await llm.invoke('Hi', options)).text;
  let text = '';
  for await (const piece of await llm.stream('Hi', options)) text += piece.text;
  return text;
});
