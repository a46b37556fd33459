/**
 * A custom team: the solver writes two drafts at once, and only when they disagree does the verifier judge whether the
 * first is right. The team's reward is for its answer; the verifier's, when it is called, is for its verdict.
 *
 * It shows how a team is written. Twenty steps of a toy model on this arithmetic do not raise its score. A team whose
 * score rises in seconds is the one that `npx drmas init my-team` writes.
 */
import { agent, arithmetic, assistant, boxed, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const team = defineTeam({
  name: 'second-opinion',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    solver: agent({ system: 'Solve', parse: boxed, sampling: { maxTokens: 30 }, invalidPenalty: 0.1 }),
    verifier: agent({ system: 'Judge', parse: oneOf('<approve>', '<reject>'), sampling: { maxTokens: 10 } }),
  },
  async play({ task, agents: { solver, verifier } }) {
    const [first, second] = await Promise.all([solver(task.question), solver(task.question)]);
    if (first.value === second.value) return { answer: first.value, draft: first.value, verdict: undefined };
    const verdict = await verifier([user(task.question), assistant(first.text)]);
    const chosen = verdict.value === '<reject>' ? second : first;
    return { answer: chosen.value, draft: first.value, verdict: verdict.value };
  },
  reward: ({ outcome: { answer, draft, verdict }, task }) => ({
    team: answer === task.answer,
    agents: verdict && { verifier: (draft === task.answer) === (verdict === '<approve>') },
  }),
});

export default defineRecipe({
  team,
  tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 96, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 500 },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
  evaluation: { every: 10, tasks: 100, samples: 2 },
});
