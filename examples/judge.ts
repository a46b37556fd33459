/**
 * A judge as the reward: a clerk answers customers, and a frozen model grades each reply from 0 to 9. The judge is a
 * tiny model here, which the warm start teaches to grade. With JUDGE_URL and JUDGE_MODEL in the environment it is a
 * model on a server with OpenAI's protocol, for example Ollama:
 *
 *     JUDGE_URL=http://127.0.0.1:11434/v1 JUDGE_MODEL=qwen3:4b npx drmas train examples/judge.ts
 */
import { agent, defineRecipe, defineTeam, frozen, integer, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const { JUDGE_URL, JUDGE_MODEL = '' } = process.env;
const replies = { 'gladly!': '9', 'yes.': '6', 'later.': '3', 'no!': '0' };
const asks = ['a fig', 'a kiwi', 'a lime', 'a pear', 'a plum', 'a date', 'a nut', 'a bean'];
const tasks = asks.flatMap((what) => Array.from({ length: 5 }, (_, i) => ({ ask: `customer ${i + 1}: ${what}?` })));
const tasksOf = (split: 'train' | 'test') => tasks.filter((_, i) => (i % 5 === 0) === (split === 'test'));

export const team = defineTeam({
  name: 'service',
  task: z.object({ ask: z.string() }),
  agents: {
    clerk: agent({ sampling: { maxTokens: 10 } }),
    judge: agent({
      system: 'Grade how kind this reply of a clerk is, from 0 to 9. Answer with the digit.',
      parse: integer,
      sampling: { maxTokens: 4, temperature: 0 },
    }),
  },
  play: async ({ task, agents: { clerk } }) => ({ reply: (await clerk(task.ask)).text }),
  // A grade that cannot be read is no reward: the error makes drmas ask again, and then leave the episode out.
  async reward({ outcome, agents: { judge } }) {
    const { value, text } = await judge([user(outcome.reply)]);
    if (value === undefined || value < 0 || value > 9) throw new Error(`the judge gave no digit: ${text}`);
    return { kind: value / 9 };
  },
  success: ({ outcome }) => outcome.reply === 'gladly!',
});

const sizes = { width: 48, layers: 2, heads: 3, feedForward: 128, context: 128 };
const model = tinyDecoder({ ...sizes, tokenizer: { type: 'bytes' } });
export default defineRecipe({
  team,
  tasks: {
    name: 'customers',
    load: async (split) => {
      const all = tasksOf(split);
      return { name: `customers ${split}`, size: all.length, at: (i) => ({ id: all[i]?.ask ?? '', data: all[i] }) };
    },
    trace(random, split) {
      const [reply, grade] = random.pick(Object.entries(replies) as [[string, string]]);
      if (random.chance(0.5)) return { agent: 'judge', messages: [user(reply)], response: grade };
      const { ask } = random.pick(tasksOf(split) as [{ ask: string }]);
      return { agent: 'clerk', messages: [user(ask)], response: reply };
    },
  },
  model,
  assign: { clerk: 'clerk', judge: frozen(JUDGE_URL === undefined ? model : { url: JUDGE_URL, model: JUDGE_MODEL }) },
  warmStart: { steps: 150, share: 'policy' },
  training: { steps: 60, tasksPerStep: 4, groupSize: 8 },
});
