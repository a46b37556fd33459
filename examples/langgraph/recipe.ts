/**
 * A shop of two agents as a graph of LangGraph: a buyer looks up a price with a tool, a cashier who sees the count and
 * that price writes the sum. The graph takes its models as a parameter. In training they are the agents of the team; in
 * production they are yours:
 *
 *     const graph = shop(() => new ChatOpenAI({ model: 'gpt-5-mini' }));
 */
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { agent, defineRecipe, defineTeam, integer, tinyDecoder } from 'drmas';
import { boundFetch } from 'drmas/agents';
import { z } from 'zod';
import { looksUp, ordersAt } from '../ai-sdk/orders.js';
import { prices } from '../ai-sdk/prices.js';

const price = tool(async ({ fruit }: { fruit: string }) => String(prices[fruit] ?? 'not for sale'), {
  name: 'price',
  description: 'price of one',
  schema: z.object({ fruit: z.string() }),
});

export function shop(modelOf: (agent: 'buyer' | 'cashier') => ChatOpenAI) {
  const [buyer, cashier] = [modelOf('buyer').bindTools([price]), modelOf('cashier')];
  return new StateGraph(MessagesAnnotation)
    .addNode('buyer', async ({ messages }) => ({
      messages: [await buyer.invoke([{ role: 'system', content: 'Say its price.' }, ...messages])],
    }))
    .addNode('tools', new ToolNode([price]))
    .addNode('cashier', async ({ messages }) => {
      const bill = `${messages[0]?.text.split(' ')[0]} ${messages.at(-1)?.text}`;
      const read = [
        { role: 'system' as const, content: 'Write count*price.' },
        { role: 'user' as const, content: bill },
      ];
      return { messages: [await cashier.invoke(read)] };
    })
    .addEdge(START, 'buyer')
    .addConditionalEdges('buyer', toolsCondition, { tools: 'tools', [END]: 'cashier' })
    .addEdge('tools', 'buyer')
    .addEdge('cashier', END)
    .compile();
}

// `boundFetch` finds the episode of each call, so the graph is compiled once.
const here = { baseURL: 'http://drmas/v1', fetch: boundFetch };
const graph = shop((model) => new ChatOpenAI({ model, apiKey: 'drmas', maxRetries: 0, configuration: here }));

const team = defineTeam({
  name: 'shop of LangGraph',
  task: z.object({ order: z.string(), cost: z.number() }),
  agents: {
    buyer: agent({ tools: 'plain', parse: integer, sampling: { maxTokens: 16 }, invalidPenalty: 0.1 }),
    cashier: agent({ sampling: { maxTokens: 8 } }),
  },
  async play({ task, signal }) {
    const { messages } = await graph.invoke({ messages: [{ role: 'user', content: task.order }] }, { signal });
    const [, count, each] = /^(\d+)\*(\d+)$/.exec(messages.at(-1)?.text ?? '') ?? [];
    return { cost: count === undefined ? undefined : Number(count) * Number(each) };
  },
  // The right sum counts if the buyer has asked for the ordered fruit, and did not know or guess its price.
  reward: ({ outcome, task, episode }) => ({ correct: outcome.cost === task.cost && looksUp(task.order, episode) }),
});

export default defineRecipe({
  team,
  tasks: ordersAt(prices),
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 160, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 150 },
  training: { steps: 120, tasksPerStep: 8, groupSize: 8 },
  evaluation: { every: 40, samples: 4 },
});
