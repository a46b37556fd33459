/**
 * One agent on the problems of the recipe `math`, to compare a single agent with teams. If one agent is called once an
 * episode, normalising by agent changes nothing, so `drmas` and `grpo` give the same run here, to the last bit.
 */
import { agent, arithmetic, arithmeticSymbols, boxed, defineRecipe, defineTeam, gradeMath, tinyDecoder } from 'drmas';
import { z } from 'zod';

const team = defineTeam({
  name: 'solo',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: { solver: agent({ system: '<solver>', parse: boxed, invalidPenalty: 0.1, sampling: { maxTokens: 48 } }) },
  play: async ({ task, agents: { solver } }) => ({ answer: (await solver(task.question)).value }),
  reward: ({ outcome, task }) => ({ correct: gradeMath(outcome.answer, task.answer) }),
});

export default defineRecipe({
  team,
  tasks: arithmetic({ operations: [4, 6], warmStartOperations: [3, 6], demonstrations: { solver: 1, second: 0 } }),
  model: tinyDecoder({
    width: 64,
    layers: 3,
    heads: 4,
    feedForward: 176,
    context: 128,
    tokenizer: {
      type: 'symbols',
      symbols: arithmeticSymbols,
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  warmStart: { steps: 2000, batch: 64, learningRate: 8e-3, lossTarget: 0.1 },
  training: { steps: 60, tasksPerStep: 16, groupSize: 8 },
  evaluation: { every: 20, tasks: 256, samples: 4 },
});
