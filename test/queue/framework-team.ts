/** A team of another framework's agents: one by the AI SDK, one by OpenAI's client over the gateway. */
import { generateText } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';
import { agent, arithmetic, defineRecipe, defineTeam, tinyDecoder } from '../../src/index.js';

export default defineRecipe({
  name: 'frameworks',
  team: defineTeam({
    name: 'frameworks',
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: {
      solver: agent({ parse: (text) => /\d/.exec(text)?.[0], invalidPenalty: 0.1, sampling: { maxTokens: 4 } }),
      judge: agent({ parse: (text) => text, sampling: { maxTokens: 2 } }),
    },
    async play({ task, agents: { solver }, gateway, signal }) {
      const first = await generateText({ model: solver.model, prompt: task.question, abortSignal: signal });
      const client = new OpenAI({ baseURL: gateway.env.OPENAI_BASE_URL, apiKey: gateway.secret, maxRetries: 0 });
      const messages = [{ role: 'user', content: first.text || 'Nothing.' }] as const;
      // The temperature is the recipe's: that it is wished for here is a warning of the run.
      const judged = await client.chat.completions.create({
        model: 'judge',
        messages: [...messages],
        temperature: 0.5,
      });
      return { text: `${first.text}${judged.choices[0]?.message.content ?? ''}` };
    },
    reward: ({ outcome }) => (outcome.text.match(/[0-4]/g)?.length ?? 0) / (outcome.text.length + 1),
  }),
  gateway: {},
  tasks: arithmetic({ operations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 8, layers: 1, heads: 2, feedForward: 8, context: 64, tokenizer: { type: 'bytes' } }),
  training: { steps: 2, tasksPerStep: 4, groupSize: 4, checkpointEvery: 100 },
  evaluation: { every: 2, tasks: 4, samples: 2 },
});
