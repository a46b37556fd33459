/**
 * The orders, and demonstrations for a model that begins as random numbers: it learns to call the tool, half of the
 * time for any fruit. Who begins with a model that can talk needs the first half alone, or a file of tasks.
 */
import { assistant, type Episode, system, type TaskSource, user } from 'drmas';

const buying = system('Say its price.\n@price(fruit): price of one');
const paying = system('Write count*price.');

/** Whether the buyer asks the tool for the fruit of an order. */
export function looksUp(order: string, { turns }: Pick<Episode, 'turns'>): boolean {
  const fruit = JSON.stringify(order.split(' ')[1]);
  return turns.some(({ toolCalls = [] }) => toolCalls.some((call) => call.arguments.includes(fruit)));
}

type Order = { readonly order: string; readonly cost: number };

/** Orders such as `3 fig` at a shop. */
export function ordersAt(prices: Readonly<Record<string, number>>): TaskSource<Order> {
  const fruits = Object.keys(prices) as [string, ...string[]];
  const all = fruits.flatMap((fruit) =>
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => ({ order: `${n} ${fruit}`, cost: n * (prices[fruit] ?? 0) })),
  );
  const ordersOf = (split: 'train' | 'test') =>
    all.filter((_, i) => (i % 5 === 0) === (split === 'test')) as [Order, ...Order[]];
  return {
    name: 'orders',
    load: async (split) => {
      const tasks = ordersOf(split);
      return {
        name: `orders ${split}`,
        size: tasks.length,
        at: (index) => {
          const data = tasks[index] ?? { order: '', cost: 0 };
          return { id: data.order, data };
        },
      };
    },
    trace(random, split) {
      const { order, cost } = random.pick(ordersOf(split));
      const [count = '', fruit = ''] = order.split(' ');
      const each = String(cost / Number(count));
      if (random.chance(0.4))
        return { agent: 'cashier', messages: [paying, user(`${count} ${each}`)], response: `${count}*${each}` };
      const wanted = random.chance(0.5) ? fruit : random.pick(fruits);
      const call = `@price(${wanted})`;
      if (random.chance(0.5)) return { agent: 'buyer', messages: [buying, user(order)], response: call };
      const answered = [buying, user(order), assistant(call), user(String(prices[wanted]))];
      return { agent: 'buyer', messages: answered, response: String(prices[wanted]) };
    },
  };
}
