/**
 * A team with a tool: plain code between two calls of agents. A buyer names the price to look up, a cashier writes the
 * sum, a calculator computes it. Half of the demonstrated buyers request a random price; reinforcement corrects them.
 */
import { agent, defineRecipe, defineTeam, tagged, tinyDecoder, user } from 'drmas';
import { calculate } from 'drmas/tasks';
import { z } from 'zod';

const prices = new Map(Object.entries({ fig: 5, kiwi: 3, lime: 2, pear: 4, plum: 5, date: 3, nut: 2, bean: 4 }));
const orders = [...prices].flatMap(([fruit, price]) =>
  Array.from({ length: 9 }, (_, i) => ({ fruit, price, question: `${i + 1} ${fruit}`, answer: `${(i + 1) * price}` })),
);
const ordersOf = (split: 'train' | 'test') => orders.filter((_, i) => (i % 5 === 0) === (split === 'test'));

/** The tool; it could also call a server. */
async function lookUp(fruit: string, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  return String(prices.get(fruit) ?? 'not for sale');
}

const team = defineTeam({
  name: 'shop',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    buyer: agent({ system: 'Buy', parse: tagged('price'), sampling: { maxTokens: 24 }, invalidPenalty: 0.1 }),
    cashier: agent({ system: 'Pay', parse: calculate, sampling: { maxTokens: 6 }, invalidPenalty: 0.1 }),
  },
  async play({ task, agents: { buyer, cashier }, signal }) {
    const wanted = await buyer(task.question);
    const price = wanted.valid ? await lookUp(wanted.value, signal) : 'not asked for';
    const total = await cashier(`${task.question} ${price}`);
    return { answer: total.value };
  },
  reward: ({ outcome, task }) => ({ correct: outcome.answer === task.answer }),
});

export default defineRecipe({
  team,
  tasks: {
    name: 'shop',
    load: async (split) => {
      const splitOrders = ordersOf(split);
      const at = (index: number) => ({ id: splitOrders[index]?.question ?? '', data: splitOrders[index] });
      return { name: `shop ${split}`, size: splitOrders.length, at };
    },
    trace(random, split) {
      const order = random.pick(ordersOf(split) as [(typeof orders)[number]]);
      const bill = {
        messages: [user(`${order.question} ${order.price}`)],
        response: `${order.question[0]}*${order.price}`,
      };
      if (random.chance(0.5)) return { agent: 'cashier', ...bill };
      const wanted = random.chance(0.5) ? order.fruit : random.pick([...prices.keys()] as [string]);
      return { agent: 'buyer', messages: [user(order.question)], response: `<price>${wanted}</price>` };
    },
  },
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 96, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 100 },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
});
