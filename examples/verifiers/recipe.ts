/**
 * Trains both seats of verifiers' environment `user-sim`, each with an adapter of its own. The user knows a number and
 * asks; the assistant has to say it. `seats.py` plays the episodes and gives each seat the address of its agent.
 *
 *     pip install "verifiers>=0.4" && npx drmas train examples/verifiers/recipe.ts
 */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { agent, defineRecipe, defineTeam, lora, system, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const environment = { id: 'user-sim', taskset: { id: 'orders' }, persona: '{scenario}', user: { max_turns: 1 } };
const line = z.object({
  id: z.int(),
  rewards: z.record(z.string(), z.number()).optional(),
  error: z.string().optional(),
});

/** One process plays all episodes: starting verifiers takes seconds. It ends with this process. */
function openSeats() {
  const script = fileURLToPath(new URL('seats.py', import.meta.url));
  const words = [script, JSON.stringify(environment)];
  const child = spawn(process.env.VERIFIERS_PYTHON ?? 'python3', words, { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map<number, (played: Partial<z.output<typeof line>>) => void>();
  createInterface(child.stdout).on('line', (text) => {
    const played = line.parse(JSON.parse(text));
    waiting.get(played.id)?.(played);
    waiting.delete(played.id);
  });
  const end = (why: unknown) => {
    for (const settle of waiting.values()) settle({ error: `seats.py has ended: ${why}` });
    waiting.clear();
    seats = undefined;
  };
  child.on('exit', end).on('error', end);
  child.unref();
  for (const stream of [child.stdin, child.stdout]) (stream as unknown as Socket).unref();
  let episodes = 0;
  return async (episode: { task: number; key: string; seats: Record<string, string> }) => {
    const id = episodes++;
    const { rewards, error } = await new Promise<Partial<z.output<typeof line>>>((resolve) => {
      waiting.set(id, resolve);
      child.stdin.write(`${JSON.stringify({ id, ...episode })}\n`);
    });
    if (rewards === undefined) throw new Error(error ?? 'seats.py gave no rewards');
    return rewards;
  };
}
let seats: ReturnType<typeof openSeats> | undefined;

const team = defineTeam({
  name: 'seats',
  task: z.object({ number: z.int() }),
  agents: { user: agent({ sampling: { maxTokens: 3 } }), assistant: agent({ sampling: { maxTokens: 3 } }) },
  async play({ task, gateway }) {
    seats ??= openSeats();
    const addresses = { user: gateway.urlOf('user'), assistant: gateway.urlOf('assistant') };
    return seats({ task: task.number, key: gateway.secret, seats: addresses });
  },
  reward: ({ outcome }) => ({ correct: outcome.assistant ?? 0 }),
});

const base = { width: 48, layers: 2, heads: 3, feedForward: 128, context: 256 };

export default defineRecipe({
  team,
  tasks: {
    name: 'orders',
    load: async (split) => ({
      name: `orders ${split}`,
      size: 5,
      at: (i) => ({ id: `${split} ${i}`, data: { number: split === 'test' ? 2 * i + 1 : 2 * i } }),
    }),
    trace(random) {
      const [number, other] = [random.integer(0, 9), random.integer(0, 9)];
      const said = String(random.chance(0.5) ? number : other);
      const greeting = [system(String(number)), user('Hello! How can I help you today?')];
      if (random.chance(0.5)) return { agent: 'user', messages: greeting, response: said };
      return { agent: 'assistant', messages: [system('help'), user(String(number))], response: said };
    },
  },
  model: lora(tinyDecoder({ ...base, tokenizer: { type: 'bytes' } }), { rank: 4 }),
  gateway: {},
  warmStart: { steps: 150 },
  training: { steps: 20, tasksPerStep: 4, groupSize: 8 },
});
