/**
 * Two agents and their recipe. The answerer names the larger of two numbers, and the checker says whether that is
 * right. After a "no" the answerer answers again. Each agent is a LoRA adapter on one language model.
 */
import { join } from 'node:path';
import { agent, assistant, checkpoint, defineRecipe, defineTeam, integer, jsonl, lora, oneOf, user } from 'drmas';
import { z } from 'zod';

const question = (numbers: string) => `Which number is larger, ${numbers}?`;

export const team = defineTeam({
  name: 'larger-number',
  // The fields of a line in the task files.
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    answerer: agent({
      system: 'Reply with the larger number in digits and nothing else.',
      parse: integer,
      sampling: { maxTokens: 8 },
      invalidPenalty: 0.1,
    }),
    checker: agent({
      system: 'Reply with <yes> if the answer is right, with <no> if it is wrong, and with nothing else.',
      parse: oneOf('<yes>', '<no>'),
      sampling: { maxTokens: 8 },
      invalidPenalty: 0.1,
    }),
  },
  // One episode. `value` is undefined if the output is invalid.
  async play({ task, agents: { answerer, checker } }) {
    const asked = user(question(task.question));
    const first = await answerer([asked]);
    const verdict = await checker(`${question(task.question)}\nAnswer: ${first.text}`);
    const again = [asked, assistant(first.text), user('That is wrong. Reply again.')];
    const last = verdict.value === '<no>' ? await answerer(again) : first;
    return { first: first.value, answer: last.value, verdict: verdict.value };
  },
  // The reward: the team gets 1 for a right answer, the checker for a right verdict.
  reward({ outcome: { first, answer, verdict }, task }) {
    const right = String(first) === task.answer;
    return {
      team: { correct: String(answer) === task.answer },
      agents: { checker: verdict === (right ? '<yes>' : '<no>') },
    };
  },
});

// Each line of a file is a task.
const tasks = (file: string) => jsonl(join(import.meta.dirname, 'tasks', file));

export default defineRecipe({
  team,
  tasks: { train: tasks('train.jsonl'), test: tasks('test.jsonl') },
  // The adapters are trained, the model below them is not.
  model: lora(checkpoint('{{model}}'), { rank: 16 }),
  policies: {
    answerer: { optimizer: { learningRate: 1e-4 } },
    checker: { optimizer: { learningRate: 1e-4 } },
  },
  training: { steps: 20, tasksPerStep: 4, groupSize: 8, checkpointEvery: 5 },
  evaluation: { every: 10, tasks: 18, samples: 2 },
});
