/** The calculator task with one agent, as a recipe: the reinforcement step that the peers repeat in Python. */

import { tinyDecoder } from '@drmas/engine/model';
import { z } from 'zod';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { arithmetic, arithmeticSymbols } from '../../src/teams/tasks/generated/arithmetic.js';
import { gradeMath } from '../../src/teams/tasks/grading/math.js';
import { agent } from '../../src/teams/team/agent.js';
import { boxed } from '../../src/teams/team/parsers.js';
import { defineTeam } from '../../src/teams/team/team.js';

export const TASKS_PER_STEP = 16;
export const GROUP_SIZE = 8;
export const MAX_TOKENS = 48;
export const LEARNING_RATE = 2e-4;
/** The model's special symbols, which the Python peers need too. */
export const symbols = { all: arithmeticSymbols, agent: '<solver>', endOfUser: '<ask>', stop: '<end>' } as const;

export const calculatorTasks = arithmetic({
  operations: [4, 6],
  warmStartOperations: [3, 6],
  demonstrations: { solver: 1 },
});

const team = defineTeam({
  name: 'calculator',
  task: z.object({ question: z.string(), answer: z.string() }),
  // The peers have no penalty for a wrong format.
  agents: { solver: agent({ system: symbols.agent, parse: boxed, invalidPenalty: 0 }) },
  async play({ task, agents: { solver } }) {
    const { value } = await solver(task.question);
    return { answer: value };
  },
  reward: ({ outcome, task }) => (gradeMath(outcome.answer, task.answer) ? 1 : 0),
});

/**
 * The training of sixteen tasks by eight episodes for `steps` steps, with one checkpoint at the end and the fewest
 * evaluations.
 */
export function calculatorRecipe(steps: number, warmStartSteps: number) {
  return defineRecipe({
    name: 'bench-calculator',
    team,
    tasks: calculatorTasks,
    model: tinyDecoder({
      width: 64,
      layers: 3,
      heads: 4,
      feedForward: 172,
      context: 128,
      tokenizer: {
        type: 'symbols',
        symbols: symbols.all,
        stop: symbols.stop,
        endOfUser: symbols.endOfUser,
        endOfAssistant: symbols.stop,
      },
    }),
    agents: { solver: { sampling: { maxTokens: MAX_TOKENS } } },
    advantage: { type: 'grpo' },
    policies: { solver: { optimizer: { learningRate: LEARNING_RATE } } },
    warmStart: { steps: warmStartSteps },
    training: { steps, tasksPerStep: TASKS_PER_STEP, groupSize: GROUP_SIZE, checkpointEvery: Math.max(1, steps) },
    evaluation: { every: 1_000_000, tasks: 1, samples: 1 },
  });
}
