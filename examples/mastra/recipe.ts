/**
 * A shop of two agents of Mastra: a buyer looks up a price with a tool, a cashier who sees the count and that price
 * writes the sum. `trainable` is all that the agents know of training; elsewhere the model that you give as `otherwise`
 * answers. Mastra needs Node 22.13 or newer.
 */
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { agent, defineRecipe, defineTeam, integer, tinyDecoder } from 'drmas';
import { trainable } from 'drmas/agents';
import { z } from 'zod';
import { looksUp, ordersAt } from '../ai-sdk/orders.js';
import { prices } from '../ai-sdk/prices.js';

const price = createTool({
  id: 'price',
  description: 'price of one',
  inputSchema: z.object({ fruit: z.string() }),
  execute: async ({ fruit }) => String(prices[fruit] ?? 'not for sale'),
});

// In production: trainable('buyer', { otherwise: openai('gpt-5-mini') }), with a provider of AI SDK.
const buyer = new Agent({
  id: 'buyer',
  name: 'buyer',
  instructions: 'Say its price.',
  model: trainable('buyer'),
  tools: { price },
});
const cashier = new Agent({
  id: 'cashier',
  name: 'cashier',
  instructions: 'Write count*price.',
  model: trainable('cashier'),
});

const team = defineTeam({
  name: 'shop of Mastra',
  task: z.object({ order: z.string(), cost: z.number() }),
  agents: {
    buyer: agent({ tools: 'plain', parse: integer, sampling: { maxTokens: 16 }, invalidPenalty: 0.1 }),
    cashier: agent({ sampling: { maxTokens: 8 } }),
  },
  async play({ task, signal: abortSignal }) {
    const { steps } = await buyer.generate(task.order, { maxSteps: 4, abortSignal });
    // Mastra's own `text` joins the texts of all steps; the last step has the price.
    const { text } = await cashier.generate(`${task.order.split(' ')[0]} ${steps.at(-1)?.text ?? ''}`, { abortSignal });
    const [, count, each] = /^(\d+)\*(\d+)$/.exec(text) ?? [];
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
