/**
 * Two agents and their recipe. The answerer names the larger of two numbers, and the checker says whether that is
 * right. After a "no" the answerer answers again. Demonstrations teach the form of an answer, the reward teaches right
 * answers.
 */
import { join } from 'node:path';
import {
  agent,
  assistant,
  defineRecipe,
  defineTeam,
  integer,
  jsonl,
  oneOf,
  type TaskSource,
  type Trace,
  tinyDecoder,
  user,
} from 'drmas';
import { z } from 'zod';

/** An answer is one symbol. An invalid one pays a penalty. */
const short = { sampling: { maxTokens: 1 }, invalidPenalty: 0.1 };

export const team = defineTeam({
  name: 'larger-number',
  // The fields of a line in the task files.
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    answerer: agent({ system: '<answer>', parse: integer, ...short }),
    checker: agent({ system: '<check>', parse: oneOf('<yes>', '<no>'), ...short }),
  },
  // One episode. `value` is undefined if the output is invalid.
  async play({ task, agents: { answerer, checker } }) {
    const first = await answerer(task.question);
    const asked = [user(task.question), assistant(first.text)];
    const verdict = await checker(asked);
    const last = verdict.value === '<no>' ? await answerer([...asked, user('<no>')]) : first;
    return { first: first.value, answer: last.value, verdict: verdict.value };
  },
  // The reward: the team gets 1 for a right answer if its first one was a number, the checker 1 for a right verdict.
  reward: ({ outcome: { first, answer, verdict }, task }) => ({
    team: { correct: first !== undefined && String(answer) === task.answer },
    agents: { checker: verdict === (String(first) === task.answer ? '<yes>' : '<no>') },
  }),
});

/** A demonstration for the warm start: either number, either verdict. */
const trace: TaskSource['trace'] = (random): Trace => {
  const numbers = [random.integer(0, 9), random.integer(0, 9)] as const;
  const question = numbers.join(' or ');
  const answer = String(random.pick(numbers));
  if (random.chance(0.5)) return { agent: 'answerer', messages: [user(question)], response: answer };
  const messages = [user(question), assistant(answer)];
  return { agent: 'checker', messages, response: random.pick(['<yes>', '<no>']) };
};

// Each line of a file is a task. A model that can already answer, such as a checkpoint, needs neither trace nor
// warmStart.
const tasks = (file: string) => ({ ...jsonl(join(import.meta.dirname, 'tasks', file)), trace });

export default defineRecipe({
  team,
  tasks: { train: tasks('train.jsonl'), test: tasks('test.jsonl') },
  // A toy model that knows only these symbols. For a language model use checkpoint('path/to/model').
  model: tinyDecoder({
    width: 32,
    layers: 2,
    heads: 4,
    feedForward: 64,
    context: 16,
    tokenizer: {
      type: 'symbols',
      symbols: [...'0123456789', ' or ', '<yes>', '<no>', '<answer>', '<check>', '<ask>', '<end>'],
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  warmStart: { steps: 100, batch: 32 },
  policies: {
    answerer: { optimizer: { learningRate: 1e-3 } },
    checker: { optimizer: { learningRate: 1e-3 } },
  },
  training: { steps: 100, tasksPerStep: 16, groupSize: 8 },
  evaluation: { every: 50, tasks: 18, samples: 16 },
});
