import { assistant, RecipeError, type TaskSource, type Trace, user } from 'drmas';
import { checkedOptions, isHeldOut, RandomStream, type Split } from 'drmas/tasks';
import { z } from 'zod';

const share = z.number().min(0).max(1);

export const ordersSettings = z.strictObject({
  items: z.int().min(1).max(4).default(3).describe('The number of different items of an order.'),
  seed: z.int().min(0).default(0).describe('The seed of the orders, not of the demonstrations.'),
  demonstrations: z
    .strictObject({
      planner: share.default(0.25).describe('The share of demonstrations that show the planner.'),
      executor: share.default(0.5).describe('The share that show the executor; the rest show the verifier.'),
      forgotten: share.default(0.5).describe("The share of the planner's lists that lack the last item."),
      added: share.default(0.5).describe("The share of the executor's amounts that add where they should multiply."),
      guessed: share.default(1).describe("The share of the verifier's verdicts that are guesses."),
    })
    .refine(({ planner, executor }) => planner + executor <= 1, 'planner and executor together exceed 1')
    .prefault({})
    .describe("The content of the warm start's demonstrations."),
});

/** The options of `orders`. */
export type OrdersOptions = z.input<typeof ordersSettings>;

export interface OrderItem {
  readonly item: string;
  readonly count: number;
}

export interface OrderTask {
  readonly order: readonly OrderItem[];
}

const prices: Readonly<Record<string, number>> = {
  fig: 2,
  kiwi: 3,
  lime: 4,
  pear: 5,
  plum: 6,
  date: 7,
  nut: 8,
  bean: 9,
};
const items = Object.keys(prices);
const HIGHEST_COUNT = 9;

/** All symbols of this family's texts, for a model with one token for each. */
export const orderSymbols: readonly string[] = [
  ...['<end>', '<ask>', '<planner>', '<executor>', '<verifier>'],
  ...['x', '<complete>', '<incomplete>'],
  ...'0123456789',
  ...items.map((item) => ` ${item}`),
];

/** The text of an order: `2 fig7 pear1 nut`, each item after its count. */
export const orderText = (order: readonly OrderItem[]): string =>
  order.map(({ item, count }) => `${count} ${item}`).join('');

/** The text of a list of items: ` fig pear nut`. */
export const listText = (list: readonly string[]): string => list.map((item) => ` ${item}`).join('');

/** The different items that a text lists; `undefined` for any other text, and for an item that comes twice. */
export function itemList(text: string): readonly string[] | undefined {
  const [before, ...list] = text.split(' ');
  const known = list.every((item) => items.includes(item)) && new Set(list).size === list.length;
  return before === '' && list.length > 0 && known ? list : undefined;
}

/** The question for what so many of an item cost: `7x5`. */
export const amountText = ({ item, count }: OrderItem): string => `${count}x${priceOf(item)}`;

/** The total cost of an item of an order. */
export const amountOf = ({ item, count }: OrderItem): number => count * priceOf(item);

/** An amount of two digits. */
export function twoDigitAmount(text: string): number | undefined {
  return /^\d\d$/.test(text) ? Number(text) : undefined;
}

function priceOf(item: string): number {
  const price = prices[item];
  if (price === undefined) throw new RecipeError(`there is no price of '${item}'`);
  return price;
}

const HELD_OUT_SHARE = 0.1;

/**
 * Orders of a shop, `2 fig7 pear1 nut`, for a team in which a planner lists the items, an executor calculates what each
 * costs, and a verifier says whether the list is complete. `trace` demonstrates a planner that often forgets the last
 * item, an executor that often adds instead of multiplying, and a verifier that guesses.
 *
 * @throws RecipeError naming the setting that is wrong.
 *
 * @example
 * ```ts
 * import { orders } from 'drmas/recipes/shop/world';
 *
 * const tasks = orders({ items: 2 });
 * ```
 */
export function orders(options: OrdersOptions = {}): TaskSource<OrderTask> {
  const settings = checkedOptions('orders', ordersSettings, options);

  const draw = (random: RandomStream, split: Split): OrderItem[] => {
    for (;;) {
      const left = [...items];
      const order = Array.from({ length: settings.items }, () => {
        const [item = ''] = left.splice(random.integer(0, left.length - 1), 1);
        return { item, count: random.integer(1, HIGHEST_COUNT) };
      });
      if (isHeldOut(orderText(order), HELD_OUT_SHARE) === (split === 'test')) return order;
    }
  };

  return {
    name: 'orders',
    settings,
    configure: (changed) => orders(changed as OrdersOptions),
    load: async (split) => ({
      name: `orders ${split}`,
      size: Number.POSITIVE_INFINITY,
      at: (index) => {
        const order = draw(new RandomStream('orders', settings.seed, split, index), split);
        return { id: orderText(order), data: { order } };
      },
    }),
    trace: (random, split) => demonstration(random, settings.demonstrations, draw(random, split)),
  };
}

type Demonstrations = z.output<typeof ordersSettings>['demonstrations'];

function demonstration(random: RandomStream, shares: Demonstrations, order: readonly OrderItem[]): Trace {
  const question = user(orderText(order));
  const complete = !random.chance(shares.forgotten);
  const list = listText(order.map(({ item }) => item).slice(0, complete ? order.length : -1));
  const role = random.uniform();
  if (role < shares.planner) return { agent: 'planner', messages: [question], response: list };
  if (role < shares.planner + shares.executor) {
    const item = { item: random.pick(items as [string, ...string[]]), count: random.integer(1, HIGHEST_COUNT) };
    const amount = random.chance(shares.added) ? item.count + priceOf(item.item) : amountOf(item);
    return {
      agent: 'executor',
      messages: [user(amountText(item))],
      response: String(amount).padStart(2, '0'),
    };
  }
  const verdict = random.chance(shares.guessed) ? random.chance(0.5) : complete;
  return {
    agent: 'verifier',
    messages: [question, assistant(list)],
    response: verdict ? '<complete>' : '<incomplete>',
  };
}
