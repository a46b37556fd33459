/**
 * A team with individual rewards for its agents. The solver earns for a right answer and, a little, for a short one.
 * The verifier earns for a true verdict on any answer. The team's reward, which evaluations report, is for right
 * answers.
 */
import { agent, arithmetic, assistant, boxed, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const longest = 30;

const team = defineTeam({
  name: 'paid by merit',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    solver: agent({ system: 'Solve', parse: boxed, sampling: { maxTokens: longest }, invalidPenalty: 0.1 }),
    verifier: agent({ system: 'Judge', parse: oneOf('<approve>', '<reject>'), sampling: { maxTokens: 10 } }),
  },
  async play({ task, agents: { solver, verifier } }) {
    const draft = await solver(task.question);
    const verdict = await verifier([user(task.question), assistant(draft.text)]);
    return { answer: draft.value, verdict: verdict.value };
  },
  reward: ({ outcome: { answer, verdict }, task, episode: { turns } }) => {
    const right = answer === task.answer;
    const written = turns.filter(({ agent }) => agent === 'solver').map(({ response }) => response.length);
    const brevity = 0.1 * (1 - Math.max(...written) / longest);
    return {
      team: right,
      agents: { solver: right ? 1 + brevity : 0, verifier: verdict === (right ? '<approve>' : '<reject>') },
    };
  },
});

export default defineRecipe({
  team,
  tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 96, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 500 },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
  evaluation: { every: 10, tasks: 100, samples: 2 },
});
