/**
 * A clerk that uses the tools of an MCP server, which drmas starts with the first episode and ends after the last one.
 * In the warm start half of the demonstrations ask for a random price; reinforcement teaches the clerk the right one.
 */
import { fileURLToPath } from 'node:url';
import { agent, assistant, defineRecipe, defineTeam, type Message, tinyDecoder, toolResult, user } from 'drmas';
import { mcpTools } from 'drmas/tasks';
import { z } from 'zod';

const desk = mcpTools({ command: process.execPath, args: [fileURLToPath(new URL('server.mjs', import.meta.url))] });

const prices = { fig: '5', kiwi: '3', lime: '2', pear: '4', plum: '6', date: '7', nut: '1', bean: '8' };
const fruits = Object.entries(prices) as [[string, string]];
const questions = fruits.flatMap(([fruit, price]) =>
  Array.from({ length: 9 }, (_, i) => ({ fruit, price, question: `Customer ${i + 1}: ${fruit}?` })),
);
const questionsOf = (split: 'train' | 'test') => questions.filter((_, i) => (i % 5 === 0) === (split === 'test'));

const team = defineTeam({
  name: 'clerk',
  task: z.object({ question: z.string(), price: z.string() }),
  agents: { clerk: agent({ tools: 'plain', sampling: { maxTokens: 16 }, invalidPenalty: 0.1 }) },
  async play({ task, agents: { clerk }, signal }) {
    const { tools, call } = await desk.open({ signal });
    const messages: Message[] = [user(task.question)];
    for (let turn = 0; turn < 3; turn++) {
      const reply = await clerk(messages, { tools });
      if (reply.toolCalls.length === 0) return { answer: reply.value };
      messages.push(assistant(reply));
      for (const one of reply.toolCalls) messages.push(toolResult(one, await call(one)));
    }
    return { answer: undefined };
  },
  reward: ({ outcome, task }) => ({ correct: outcome.answer === task.price }),
});

export default defineRecipe({
  team,
  tasks: {
    name: 'prices',
    load: async (split) => {
      const all = questionsOf(split);
      return { name: `prices ${split}`, size: all.length, at: (i) => ({ id: all[i]?.question ?? '', data: all[i] }) };
    },
    trace(random, split) {
      const { fruit, question } = random.pick(questionsOf(split) as [(typeof questions)[number]]);
      const [named, price] = random.chance(0.5) ? random.pick(fruits) : [fruit, prices[fruit as keyof typeof prices]];
      const parameters = { type: 'object', properties: { of: { type: 'string' } } };
      const tools = [{ name: 'price', description: 'The price of a fruit', parameters }];
      const first = { agent: 'clerk', tools, messages: [user(question)], response: `@price(${named})` };
      if (random.chance(0.5)) return first;
      const call = { id: 'call', name: 'price', arguments: JSON.stringify({ of: named }) };
      const messages = [user(question), assistant({ content: '', toolCalls: [call] }), toolResult(call, price)];
      return { ...first, messages, response: price };
    },
  },
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 256, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 150 },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
});
