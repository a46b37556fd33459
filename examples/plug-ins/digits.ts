/**
 * The team, the tasks and the model of the examples beside this file: an agent that learns to write digits below 5.
 * They are so small that each example trains in seconds.
 */
import { agent, defineTeam, type TaskSource, tinyDecoder } from 'drmas';
import { z } from 'zod';

export const team = defineTeam({
  name: 'digits',
  task: z.object({ question: z.string() }),
  agents: { writer: agent({ parse: (text) => text.match(/\d/g)?.map(Number), sampling: { maxTokens: 6 } }) },
  play: async ({ task, agents: { writer } }) => ({ digits: (await writer(task.question)).value ?? [] }),
  reward: ({ outcome: { digits } }) => digits.filter((digit) => digit < 5).length / 6,
});

/** A hundred questions that do not matter: a good answer is the same for all of them. */
export const tasks: TaskSource<{ question: string }> = {
  name: 'digits',
  load: async (split) => ({
    name: `digits/${split}`,
    size: 100,
    at: (index) => ({ id: `${split}-${index}`, data: { question: String(index) } }),
  }),
};

export const model = tinyDecoder({
  width: 8,
  layers: 1,
  heads: 2,
  feedForward: 12,
  context: 24,
  tokenizer: {
    type: 'symbols',
    symbols: [...'0123456789', '<ask>', '<end>'],
    stop: '<end>',
    endOfUser: '<ask>',
    endOfAssistant: '<end>',
  },
});
