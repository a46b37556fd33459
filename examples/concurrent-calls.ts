/**
 * A team with concurrent calls: it writes three drafts at once, judges each as soon as it arrives, and returns the
 * answer with the most approved drafts. Replies arrive in the order of the calls, so the same seed gives the same run.
 */
import { agent, arithmetic, assistant, boxed, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const DRAFTS = 3;

const team = defineTeam({
  name: 'ballot',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    solver: agent({ system: 'Solve', parse: boxed, sampling: { maxTokens: 30 }, invalidPenalty: 0.1 }),
    verifier: agent({ system: 'Judge', parse: oneOf('<approve>', '<reject>'), sampling: { maxTokens: 10 } }),
  },
  async play({ task, agents: { solver, verifier } }) {
    const ballots = await Promise.all(
      Array.from({ length: DRAFTS }, async () => {
        const draft = await solver(task.question);
        const verdict = await verifier([user(task.question), assistant(draft.text)]);
        return { answer: draft.value, weight: verdict.value === '<approve>' ? 1 : 0 };
      }),
    );
    const votes = new Map<string | undefined, number>();
    for (const { answer, weight } of ballots) votes.set(answer, (votes.get(answer) ?? 0) + weight);
    const [winner] = [...votes].sort(([, a], [, b]) => b - a);
    return { answer: winner?.[0] };
  },
  reward: ({ outcome, task }) => ({ correct: outcome.answer === task.answer }),
});

export default defineRecipe({
  team,
  tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 96, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 500 },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
  evaluation: { every: 10, tasks: 100, samples: 2 },
});
