/**
 * A team for all trade-offs. A dispatcher chooses a vehicle and a driver a route; faster ones cost more. How much speed
 * counts stands in the prompt.
 */

import { z } from 'zod';
import { agent, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from '../../src/index.js';
import type { RandomStream } from '../../src/public/tasks.js';

const orders = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'] as const;
const vehicles = ['bike', 'van', 'train', 'plane'] as const;
const routes = ['slow', 'middle', 'fast'] as const;
/** How much speed counts, in quarters; the rest counts for the costs. */
export const PREFERENCES = [0, 0.25, 0.5, 0.75, 1];
const word = (preference: number) => `<${4 * preference}>`;

/** Speed and costs of an order by its number, from 0 to 1. Each order has a vehicle and a route that suit it. */
function delivery(at: number, vehicle: number, route: number) {
  const suits = Number(at % 4 === vehicle) + Number(at % 3 === route);
  const pace = (vehicle / 3 + route / 2) / 2;
  return { speed: 0.7 * pace + 0.15 * suits, costs: pace ** 2 };
}

const choosing = <const Choice extends string>(system: string, choices: readonly Choice[]) =>
  agent({ system, parse: oneOf(...choices), sampling: { maxTokens: 1 } });

export const team = defineTeam({
  name: 'couriers',
  task: z.object({ order: z.enum(orders), preference: z.number() }),
  agents: { dispatcher: choosing('<vehicle>', vehicles), driver: choosing('<route>', routes) },
  async play({ task: { order, preference }, agents: { dispatcher, driver } }) {
    const vehicle = await dispatcher(`${word(preference)}${order}`);
    const route = await driver(`${word(preference)}${order}${vehicle.text}`);
    if (vehicle.value === undefined || route.value === undefined) return { speed: 0, costs: 1 };
    return delivery(orders.indexOf(order), vehicles.indexOf(vehicle.value), routes.indexOf(route.value));
  },
  reward: ({ outcome: { speed, costs }, task: { preference } }) => preference * speed + (1 - preference) * (1 - costs),
  metrics: ({ outcome }) => ({ ...outcome }),
});

const tasks = ({ preferences }: { readonly preferences: readonly number[] }) => ({
  name: 'orders',
  settings: { preferences },
  configure: (changed: unknown) => tasks(changed as { readonly preferences: readonly number[] }),
  /** Any choice for any prompt: the form alone. */
  trace(random: RandomStream) {
    const prompt = `${word(random.pick(PREFERENCES as [number, ...number[]]))}${random.pick(orders)}`;
    if (random.chance(0.5)) return { agent: 'dispatcher', messages: [user(prompt)], response: random.pick(vehicles) };
    return { agent: 'driver', messages: [user(`${prompt}${random.pick(vehicles)}`)], response: random.pick(routes) };
  },
  load: async (split: 'train' | 'test') => {
    const at = (index: number) => {
      const order = orders[index % orders.length] ?? 'A';
      const preference = preferences[Math.floor(index / orders.length) % preferences.length] ?? 0;
      return { id: `${order} ${preference}`, data: { order, preference } };
    };
    return { name: `orders ${split}`, size: orders.length * preferences.length, at };
  },
});

/** @param preferences What the team is trained for, and evaluated on */
export const couriers = (preferences: readonly number[], steps: number, seed: number) =>
  defineRecipe({
    name: 'couriers',
    seed,
    team,
    tasks: tasks({ preferences }),
    model: tinyDecoder({
      ...{ width: 32, layers: 2, heads: 2, feedForward: 64, context: 16, embeddingDeviation: 0.5 },
      tokenizer: {
        type: 'symbols',
        symbols: [
          '<end>',
          '<ask>',
          '<vehicle>',
          '<route>',
          ...PREFERENCES.map(word),
          ...orders,
          ...vehicles,
          ...routes,
        ],
        ...{ stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' },
      },
    }),
    policies: { dispatcher: { optimizer: { learningRate: 1e-3 } }, driver: { optimizer: { learningRate: 1e-3 } } },
    warmStart: { steps: 200, batch: 64, learningRate: 4e-3 },
    training: { steps, tasksPerStep: 8, groupSize: 8 },
    evaluation: { every: steps, tasks: orders.length * preferences.length, samples: 8 },
  });
