/**
 * A shop whose agents earn for their own work: a planner lists the items of an order, an executor calculates the price
 * of each item, one call an item, and a verifier decides whether the list is complete. The planner earns the share of
 * the order that it listed, less a penalty for items outside the order. Each calculation earns for the right product,
 * the verifier for a true verdict, and the team for an order without an error. The demonstrations of the warm start
 * forget items, add instead of multiplying, and guess.
 *
 * If turns have rewards of their own, it matters whether the estimator compares turns or whole episodes: under `grpo` a
 * calculation is judged by the mean of five turns.
 *
 *     drmas train shop --set advantage.type=grpo
 */
import { agent, assistant, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from 'drmas';
import { z } from 'zod';
import { amountOf, amountText, itemList, orderSymbols, orders, orderText, twoDigitAmount } from './world.js';

const team = defineTeam({
  name: 'shop',
  task: z.object({ order: z.array(z.object({ item: z.string(), count: z.number() })) }),
  agents: {
    planner: agent({ system: '<planner>', parse: itemList, sampling: { maxTokens: 5 } }),
    executor: agent({ system: '<executor>', parse: twoDigitAmount, sampling: { maxTokens: 3 } }),
    verifier: agent({ system: '<verifier>', parse: oneOf('<complete>', '<incomplete>'), sampling: { maxTokens: 2 } }),
  },
  async play({ task: { order }, agents: { planner, executor, verifier } }) {
    const question = user(orderText(order));
    const plan = await planner([question]);
    if (plan.value === undefined) return { listed: 0, amounts: [], complete: false, verdict: undefined };
    const listed = order.filter(({ item }) => plan.value.includes(item));
    const extra = plan.value.length - listed.length;
    const amounts: { turn: number; right: boolean }[] = [];
    for (const item of listed) {
      const amount = await executor(amountText(item));
      amounts.push({ turn: amount.turn, right: amount.value === amountOf(item) });
    }
    const verdict = await verifier([question, assistant(plan.text)]);
    const complete = listed.length === order.length && extra === 0;
    return { listed: Math.max(0, listed.length - extra) / order.length, amounts, complete, verdict: verdict.value };
  },
  reward: ({ outcome: { listed, amounts, complete, verdict } }) => ({
    team: complete && amounts.every(({ right }) => right) && verdict === '<complete>',
    agents: {
      planner: listed,
      executor: 0,
      verifier: verdict === (complete ? '<complete>' : '<incomplete>'),
    },
    turns: amounts.map(({ turn, right }) => ({ turn, value: right })),
  }),
  metrics: ({ outcome: { listed, amounts, complete, verdict } }) => ({
    listed,
    rightAmounts: amounts.length > 0 ? amounts.filter(({ right }) => right).length / amounts.length : undefined,
    trueVerdicts: verdict && verdict === (complete ? '<complete>' : '<incomplete>'),
  }),
});

export default defineRecipe({
  team,
  tasks: orders(),
  model: tinyDecoder({
    width: 64,
    layers: 2,
    heads: 4,
    feedForward: 160,
    context: 32,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: orderSymbols,
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  advantage: { type: 'drmas', singleton: 'zero' }, // as in the runs that are published
  warmStart: { steps: 800, batch: 64, learningRate: 4e-3 },
  training: { steps: 60, tasksPerStep: 16, groupSize: 8 },
  evaluation: { every: 20, tasks: 200, samples: 4 },
});
