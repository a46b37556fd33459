/** A team that waits for a tool in every episode; how the run plays is the environment's. */
import { z } from 'zod';
import { agent, arithmetic, defineRecipe, defineTeam, tinyDecoder } from '../../src/index.js';
import { takesTime } from '../support/time-and-chance.js';

const toolMs = Number(process.env.DRMAS_TEST_TOOL_MS ?? 20);

export default defineRecipe({
  name: 'queue',
  team: defineTeam({
    name: 'queue',
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: {
      solver: agent({ parse: (text) => /\d/.exec(text)?.[0], invalidPenalty: 0.1, sampling: { maxTokens: 4 } }),
    },
    async play({ task, agents: { solver }, random, log }) {
      const first = await solver(task.question);
      await takesTime(toolMs);
      log('draw', random.uniform());
      const second = await solver(`${task.question}${first.value ?? ''}`);
      return { text: first.text + second.text, nothing: undefined };
    },
    reward: ({ outcome }) => (outcome.text.match(/[0-4]/g)?.length ?? 0) / (outcome.text.length + 1),
  }),
  tasks: arithmetic({ operations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 8, layers: 1, heads: 2, feedForward: 8, context: 64, tokenizer: { type: 'bytes' } }),
  training: { steps: 2, tasksPerStep: 4, groupSize: 8, checkpointEvery: 100 },
  evaluation: { every: 2, tasks: 4, samples: 2 },
});
