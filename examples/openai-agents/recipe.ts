/**
 * A shop of two agents of OpenAI Agents: a buyer looks up a price with a tool, a cashier who sees the count and that
 * price writes the sum. `trainable` is all that the agents know of training; elsewhere the model that you give as
 * `otherwise` answers.
 */
import { Agent, Runner, tool } from '@openai/agents';
import { aisdk } from '@openai/agents-extensions/ai-sdk';
import { agent, defineRecipe, defineTeam, integer, tinyDecoder } from 'drmas';
import { trainable } from 'drmas/agents';
import { z } from 'zod';
import { looksUp, ordersAt } from '../ai-sdk/orders.js';
import { prices } from '../ai-sdk/prices.js';

const price = tool({
  name: 'price',
  description: 'price of one',
  parameters: z.object({ fruit: z.string() }),
  execute: async ({ fruit }) => String(prices[fruit] ?? 'not for sale'),
});

// In production: trainable('buyer', { otherwise: openai('gpt-5-mini') }), with a provider of AI SDK.
const buyer = new Agent({
  name: 'buyer',
  instructions: 'Say its price.',
  model: aisdk(trainable('buyer')),
  tools: [price],
});
const cashier = new Agent({
  name: 'cashier',
  instructions: 'Write count*price.',
  model: aisdk(trainable('cashier')),
});

const runner = new Runner({ tracingDisabled: true });

const team = defineTeam({
  name: 'shop of OpenAI Agents',
  task: z.object({ order: z.string(), cost: z.number() }),
  agents: {
    buyer: agent({ tools: 'plain', parse: integer, sampling: { maxTokens: 16 }, invalidPenalty: 0.1 }),
    cashier: agent({ sampling: { maxTokens: 8 } }),
  },
  async play({ task, signal }) {
    const { finalOutput: cost = '' } = await runner.run(buyer, task.order, { signal, maxTurns: 4 });
    const { finalOutput: sum = '' } = await runner.run(cashier, `${task.order.split(' ')[0]} ${cost}`, { signal });
    const [, count, each] = /^(\d+)\*(\d+)$/.exec(sum) ?? [];
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
