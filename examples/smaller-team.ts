/**
 * A team that declares what may be left out: `drmas shape` trains it with and without, and names the smallest team that
 * is as good. The critic of this team cannot help, and more than one round neither.
 *
 *     npx drmas shape examples/smaller-team.ts --margin 2
 */
import { agent, choiceTable, defineRecipe, defineTeam, oneOf } from 'drmas';
import { z } from 'zod';

const LETTERS = ['a', 'b', 'c', 'd'] as const;
const parse = oneOf(...LETTERS);
const sampling = { maxTokens: 1 };

export default defineRecipe({
  team: defineTeam({
    name: 'letters',
    task: z.object({ question: z.enum(['A', 'B', 'C', 'D']) }),
    agents: {
      solver: agent({ parse, sampling }),
      critic: agent({ parse, sampling, absent: 'a' }), // in a team without a critic, each of its replies is 'a'
    },
    limits: { rounds: 2 }, // shape tries lower limits
    async play({ task: { question }, agents: { solver, critic }, limits }) {
      let answer = await solver(question);
      for (let round = 1; round < limits.rounds; round++) {
        if ((await critic(question)).value === 'a') break;
        answer = await solver(question);
      }
      return answer.value;
    },
    reward: ({ outcome, task: { question } }) => outcome === question.toLowerCase(),
  }),
  tasks: {
    name: 'letters',
    load: async (split) => ({
      name: 'letters',
      size: 64,
      at: (index) => ({ id: `${split}-${index}`, data: { question: LETTERS[index % 4]?.toUpperCase() } }),
    }),
  },
  model: choiceTable({ features: LETTERS.map((letter) => letter.toUpperCase()), choices: [...LETTERS] }),
  policies: { solver: { optimizer: { learningRate: 0.7 } }, critic: { optimizer: { learningRate: 0.7 } } },
  training: { steps: 12, tasksPerStep: 16, groupSize: 4 },
  evaluation: { every: 12, tasks: 64, samples: 6 },
});
