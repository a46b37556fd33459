/**
 * A shop of two agents, written with AI SDK as it would run in production: a buyer looks up a price with a tool, a
 * cashier who sees the count and that price writes the sum. `trainable` is all that this file knows of training;
 * elsewhere `production` answers.
 */
import { gateway, stepCountIs, ToolLoopAgent, tool } from 'ai';
import { trainable } from 'drmas/agents';
import { z } from 'zod';
import { prices } from './prices.js';

/** The model before you have a trained one; it reads AI_GATEWAY_API_KEY when it is called. */
const production = gateway('openai/gpt-5-mini');

const price = tool({
  description: 'price of one',
  inputSchema: z.object({ fruit: z.string() }),
  execute: async ({ fruit }) => String(prices[fruit] ?? 'not for sale'),
});

const buyer = new ToolLoopAgent({
  model: trainable('buyer', { otherwise: production }),
  instructions: 'Say its price.',
  tools: { price },
  stopWhen: stepCountIs(4),
});

const cashier = new ToolLoopAgent({
  model: trainable('cashier', { otherwise: production }),
  instructions: 'Write count*price.',
});

/** The price of an order such as `3 fig`; undefined if the agents do not find it. */
export async function total(order: string, abortSignal?: AbortSignal): Promise<number | undefined> {
  const options = abortSignal === undefined ? {} : { abortSignal };
  const { text: cost } = await buyer.generate({ prompt: order, ...options });
  const { text: sum } = await cashier.generate({ prompt: `${order.split(' ')[0]} ${cost}`, ...options });
  const [, count, each] = /^(\d+)\*(\d+)$/.exec(sum) ?? [];
  return count === undefined ? undefined : Number(count) * Number(each);
}

if (process.argv[1] === import.meta.filename) total(process.argv[2] ?? '3 fig').then(console.log);
