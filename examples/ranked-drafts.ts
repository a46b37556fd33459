/**
 * A reward that ranks the episodes of a group: of the answers to one task, right ones come before wrong ones and short
 * ones before long ones. The judge that compares is a function here. With JUDGE_URL and JUDGE_MODEL in the environment
 * it is a model on a server with OpenAI's protocol:
 *
 *     JUDGE_URL=http://127.0.0.1:8000/v1 JUDGE_MODEL=qwen npx drmas train examples/ranked-drafts.ts
 */
import { agent, arithmetic, boxed, defineRecipe, defineTeam, gradeMath, tinyDecoder } from 'drmas';
import { z } from 'zod';

const { JUDGE_URL, JUDGE_MODEL = '' } = process.env;
type Draft = { readonly text: string; readonly answer: string | undefined };

/** Ranks from 0 (the worst draft) to 1 (the best); equal drafts have their mean rank. */
function ranks(grades: readonly number[]): number[] {
  const below = (grade: number) => grades.filter((other) => other < grade).length;
  const equal = (grade: number) => grades.filter((other) => other === grade).length - 1;
  const most = Math.max(1, grades.length - 1);
  return grades.map((grade) => (below(grade) + equal(grade) / 2) / most);
}

/** The grade of a model on a server. An error is no grade: drmas asks again, as for any reward. */
async function asked(question: string, { text }: Draft): Promise<number> {
  const content = `Grade this solution from 0 to 100. Answer with the number.\n\n${question}\n\n${text}`;
  const body = JSON.stringify({ model: JUDGE_MODEL, messages: [{ role: 'user', content }] });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY ?? ''}` };
  const response = await fetch(`${JUDGE_URL}/chat/completions`, { method: 'POST', headers, body });
  const reply = (await response.json()) as { choices: { message: { content: string } }[] };
  const grade = Number.parseFloat(reply.choices[0]?.message.content ?? '');
  if (Number.isNaN(grade)) throw new Error('the judge gave no number');
  return grade;
}

export const team = defineTeam({
  name: 'ranked-drafts',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: { solver: agent({ system: 'Solve', parse: boxed, sampling: { maxTokens: 30 } }) },
  async play({ task, agents: { solver } }): Promise<Draft> {
    const { text, value } = await solver(task.question);
    return { text, answer: value };
  },
  async rewardGroup({ task: { question, answer }, episodes }) {
    const local = (draft: Draft) => Number(gradeMath(draft.answer, answer)) - draft.text.length / 1000;
    const grade = async (draft: Draft) => (JUDGE_URL === undefined ? local(draft) : await asked(question, draft));
    return ranks(await Promise.all(episodes.map(({ outcome }) => grade(outcome))));
  },
  success: ({ outcome, task }) => gradeMath(outcome.answer, task.answer),
});

export default defineRecipe({
  team,
  tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 96, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 500 },
  training: { steps: 20, tasksPerStep: 8, groupSize: 8 },
  evaluation: { every: 10, tasks: 100, samples: 2 },
});
