/** Trains the agents of agents.ts as they are. With `checkpoint(...)` as the model, `tools` is its family's format. */
import { agent, defineRecipe, defineTeam, integer, tinyDecoder } from 'drmas';
import { z } from 'zod';
import { total } from './agents.js';
import { looksUp, ordersAt } from './orders.js';
import { prices } from './prices.js';

const team = defineTeam({
  name: 'shop',
  task: z.object({ order: z.string(), cost: z.number() }),
  agents: {
    buyer: agent({ tools: 'plain', parse: integer, sampling: { maxTokens: 16 }, invalidPenalty: 0.1 }),
    cashier: agent({ sampling: { maxTokens: 8 } }),
  },
  play: async ({ task, signal }) => ({ cost: await total(task.order, signal) }),
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
