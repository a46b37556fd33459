/** Trains the agents of agent.sh, a shell script that is started for every episode, as they are. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { agent, defineRecipe, defineTeam, integer, tinyDecoder } from 'drmas';
import { z } from 'zod';
import { looksUp, ordersAt } from '../ai-sdk/orders.js';
import { prices } from '../ai-sdk/prices.js';

const run = promisify(execFile);
const script = fileURLToPath(new URL('agent.sh', import.meta.url));

const team = defineTeam({
  name: 'shop in a shell',
  task: z.object({ order: z.string(), cost: z.number() }),
  agents: {
    buyer: agent({ tools: 'plain', parse: integer, sampling: { maxTokens: 16 }, invalidPenalty: 0.1 }),
    cashier: agent({ sampling: { maxTokens: 8 } }),
  },
  async play({ task, gateway, signal }) {
    const { stdout } = await run('bash', [script, task.order], { env: { ...process.env, ...gateway.env }, signal });
    const { sum } = z.object({ sum: z.string() }).parse(JSON.parse(stdout));
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
  gateway: {},
  warmStart: { steps: 150 },
  policies: { buyer: { optimizer: { learningRate: 5e-4 } }, cashier: { optimizer: { learningRate: 5e-4 } } },
  training: { steps: 15, tasksPerStep: 2, groupSize: 16 },
  evaluation: { every: 15, samples: 2 },
});
