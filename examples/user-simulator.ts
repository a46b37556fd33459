/**
 * A simulated user: a customer knows the wished fruit, a clerk has to name its price. The customer is frozen and asks
 * for a wrong fruit now and then. The metrics say who fails. With `assign: 'separate'` the customer trains too.
 */
import { agent, assistant, defineRecipe, defineTeam, frozen, integer, type Message, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const prices = new Map(Object.entries({ fig: 5, kiwi: 3, lime: 2, pear: 4, plum: 6, date: 7, nut: 1, bean: 8 }));
const fruits = [...prices.keys()] as [string];
const wishes = fruits.flatMap((fruit) => Array.from({ length: 9 }, (_, i) => ({ fruit, name: `${fruit} ${i + 1}` })));
const wishesOf = (split: 'train' | 'test') => wishes.filter((_, i) => (i % 5 === 0) === (split === 'test'));

const team = defineTeam({
  name: 'stall',
  task: z.object({ fruit: z.string(), name: z.string() }),
  agents: {
    customer: agent({ system: 'Ask', sampling: { maxTokens: 6 } }),
    clerk: agent({ system: 'Sell', parse: integer, sampling: { maxTokens: 3 }, invalidPenalty: 0.1 }),
  },
  async play({ task: { fruit, name }, agents: { customer, clerk } }) {
    const [heard, asked]: [Message[], Message[]] = [[user(name)], []]; // the customer's side, the clerk's side
    for (let round = 0; ; round++) {
      const wish = await customer(heard);
      asked.push(user(wish.text));
      const offer = await clerk(asked);
      if (offer.valid || round === 1) return { named: wish.text === fruit, price: offer.value };
      heard.push(assistant(wish), user(offer.text));
      asked.push(assistant(offer));
    }
  },
  reward: ({ outcome, task }) => ({ correct: outcome.price === prices.get(task.fruit) }),
  metrics: ({ outcome: { named, price }, task }) => ({
    customerFails: !named,
    clerkFails: named ? price !== prices.get(task.fruit) : undefined,
  }),
});

const sizes = { width: 48, layers: 2, heads: 3, feedForward: 128, context: 96 };
const model = tinyDecoder({ ...sizes, tokenizer: { type: 'bytes' } });
export default defineRecipe({
  team,
  tasks: {
    name: 'wishes',
    load: async (split) => {
      const all = wishesOf(split);
      return { name: `wishes ${split}`, size: all.length, at: (i) => ({ id: all[i]?.name ?? '', data: all[i] }) };
    },
    trace(random, split) {
      const { fruit, name } = random.pick(wishesOf(split) as [(typeof wishes)[number]]);
      const said = random.chance(0.8) ? fruit : random.pick(fruits);
      if (random.chance(0.5)) return { agent: 'customer', messages: [user(name)], response: said };
      const price = prices.get(random.chance(0.5) ? fruit : random.pick(fruits));
      return { agent: 'clerk', messages: [user(fruit)], response: String(price) };
    },
  },
  model,
  assign: { customer: frozen(model), clerk: 'clerk' },
  warmStart: { steps: 150, share: 'policy' },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
});
