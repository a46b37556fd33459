/**
 * A solver and a verifier on grade-school word problems (GSM8K, Cobbe et al. 2021) from a file of your own, with a small
 * byte-level model trained from scratch. It shows that the path from a file to updated weights works; a model of this size
 * solves none of the problems.
 *
 *     drmas train gsm8k --set tasks.train.file=train.jsonl
 *
 * One problem in ten is held out for evaluation. With a test file of its own:
 *
 *     drmas train gsm8k --set tasks.train.file=train.jsonl --set tasks.train.test=null --set tasks.test.file=test.jsonl
 */
import { defineRecipe, jsonl, RecipeError, solverVerifier, tinyDecoder } from 'drmas';

const problems = jsonl('train.jsonl', { test: 0.1 });

export default defineRecipe({
  team: solverVerifier({ maxLoops: 2, approve: '<approve>', reject: '<reject>' }),
  tasks: {
    ...problems,
    settings: { ...problems.settings, file: null },
    load: async () => {
      throw new RecipeError('say where the problems are: --set tasks.train.file=PATH', 'tasks.train.file');
    },
  },
  model: tinyDecoder({
    width: 64,
    layers: 2,
    heads: 4,
    feedForward: 176,
    context: 1280,
    tokenizer: { type: 'bytes' },
  }),
  agents: {
    solver: { sampling: { maxTokens: 64 } },
    verifier: { sampling: { maxTokens: 8 } },
  },
  training: { steps: 10, tasksPerStep: 4, groupSize: 4 },
  evaluation: { every: 10, tasks: 16, samples: 2 },
});
