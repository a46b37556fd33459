/**
 * A solver and a verifier on grade-school word problems (GSM8K, Cobbe et al. 2021) from a file of your own, with a
 * small byte-level model trained from scratch. It shows that the path from a file to updated weights works: a model of
 * this size solves none of the problems. So that there is something to learn from the first step on, each agent earns
 * up to 0.1 for writing readable characters; the team's reward, which evaluations report, is for right answers alone.
 *
 *     drmas train gsm8k --set tasks.train.file=train.jsonl
 *
 * One problem in ten is held out for evaluation. With a test file of its own:
 *
 *     drmas train gsm8k --set tasks.train.file=train.jsonl --set tasks.train.test=null --set tasks.test.file=test.jsonl
 */
import { defineRecipe, defineTeam, file, gradeMath, RecipeError, solverVerifier, tinyDecoder } from 'drmas';

const problems = file('train.jsonl', { test: 0.1 });

/** The share of characters that are letters, digits, punctuation or spaces. */
function readable(texts: readonly string[]): number {
  const text = texts.join('');
  return text.replaceAll(/[^ -~\n]/g, '').length / Math.max(1, text.length);
}

const team = defineTeam({
  ...solverVerifier({ maxLoops: 2, approve: '<approve>', reject: '<reject>' }),
  reward: ({ outcome, task, episode: { turns } }) => {
    const correct = Number(gradeMath(outcome.answer, task.answer));
    const earned = (agent: string) =>
      correct + 0.1 * readable(turns.filter((turn) => turn.agent === agent).map((turn) => turn.text));
    return { team: correct, agents: { solver: earned('solver'), verifier: earned('verifier') } };
  },
});

export default defineRecipe({
  team,
  tasks: {
    ...problems,
    settings: { ...problems.settings, file: null },
    load: async () => {
      throw new RecipeError('expected the file of the problems: --set tasks.train.file=PATH', 'tasks.train.file');
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
