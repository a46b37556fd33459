/**
 * An agent that calls a tool itself: a clerk requests a price with `@price(fig)`, reads it and reports it. In the warm
 * start half of the demonstrations request a random price; reinforcement teaches the clerk to request the right one.
 */
import { agent, assistant, defineRecipe, defineTeam, type Message, tinyDecoder, toolResult, user } from 'drmas';
import { z } from 'zod';

const prices = new Map(Object.entries({ fig: 5, kiwi: 3, lime: 2, pear: 4, plum: 6, date: 7, nut: 1, bean: 8 }));
const fruits = [...prices.keys()] as [string];
const wishes = fruits.flatMap((fruit) =>
  Array.from({ length: 9 }, (_, i) => ({ fruit, question: `Customer ${i + 1}: ${fruit}?` })),
);
const wishesOf = (split: 'train' | 'test') => wishes.filter((_, i) => (i % 5 === 0) === (split === 'test'));

const properties = { of: { type: 'string' } };
const tools = [{ name: 'price', parameters: { type: 'object', properties, required: ['of'] } }];
/** The tool; it could also call a server. */
const priceOf = async ({ of }: { of: string }) => String(prices.get(of) ?? 'not for sale');

const team = defineTeam({
  name: 'clerk',
  task: z.object({ fruit: z.string(), question: z.string() }),
  agents: { clerk: agent({ tools: 'plain', sampling: { maxTokens: 16 }, invalidPenalty: 0.1 }) },
  async play({ task, agents: { clerk } }) {
    const messages: Message[] = [user(task.question)];
    for (let calls = 0; calls < 3; calls++) {
      const reply = await clerk(messages, { tools });
      if (reply.toolCalls.length === 0) return { answer: reply.value };
      messages.push(assistant(reply));
      for (const call of reply.toolCalls) messages.push(toolResult(call, await priceOf(JSON.parse(call.arguments))));
    }
    return { answer: undefined };
  },
  reward: ({ outcome, task }) => ({ correct: outcome.answer === String(prices.get(task.fruit)) }),
});

export default defineRecipe({
  team,
  tasks: {
    name: 'prices',
    load: async (split) => {
      const splitWishes = wishesOf(split);
      const at = (index: number) => ({ id: splitWishes[index]?.question ?? '', data: splitWishes[index] });
      return { name: `prices ${split}`, size: splitWishes.length, at };
    },
    trace(random, split) {
      const { fruit, question } = random.pick(wishesOf(split) as [(typeof wishes)[number]]);
      const named = random.chance(0.5) ? fruit : random.pick(fruits);
      const first = { agent: 'clerk', tools, messages: [user(question)], response: `@price(${named})` };
      if (random.chance(0.5)) return first;
      const call = { id: 'call', name: 'price', arguments: JSON.stringify({ of: named }) };
      const price = String(prices.get(named));
      const messages = [user(question), assistant({ content: '', toolCalls: [call] }), toolResult(call, price)];
      return { ...first, messages, response: price };
    },
  },
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 128, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 150 },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
});
