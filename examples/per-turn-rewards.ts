/**
 * A team with rewards for single turns, and an estimator that compares turns in the same situation. A verdict is
 * rewarded for being true of its draft, and a second draft for correcting a wrong first one; all turns also share the
 * episode's reward.
 */
import { agent, arithmetic, assistant, boxed, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const team = defineTeam({
  name: 'second thoughts',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    solver: agent({ system: 'Solve', parse: boxed, sampling: { maxTokens: 24 }, invalidPenalty: 0.1 }),
    verifier: agent({ system: 'Judge', parse: oneOf('<approve>', '<reject>'), sampling: { maxTokens: 10 } }),
  },
  async play({ task, agents: { solver, verifier } }) {
    const first = await solver(task.question);
    const conversation = [user(task.question), assistant(first.text)];
    // Drafts that differ in their words but not in their answer are one situation.
    const verdict = await verifier(conversation, { observation: `judges ${first.value}` });
    if (verdict.value !== '<reject>') return { answer: first.value, first, verdict };
    const second = await solver([...conversation, user('<reject>')], { observation: `mends ${first.value}` });
    return { answer: second.value, first, verdict, second };
  },
  reward({ outcome: { answer, first, verdict, second }, task }) {
    const right = first.value === task.answer;
    const mended = second && { turn: second.turn, value: !right && second.value === task.answer };
    return {
      team: answer === task.answer,
      turns: [
        { turn: verdict.turn, value: verdict.value === (right ? '<approve>' : '<reject>') ? 0.5 : 0 },
        ...(mended ? [mended] : []),
      ],
    };
  },
});

export default defineRecipe({
  team,
  tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 96, tokenizer: { type: 'bytes' } }),
  advantage: { type: 'gigpo', byAgent: true },
  warmStart: { steps: 500 },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
  evaluation: { every: 10, tasks: 100, samples: 2 },
});
