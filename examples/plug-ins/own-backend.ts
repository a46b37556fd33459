/**
 * A backend of your own: it holds the models of a run, samples from them and trains them. This one is a fake that still
 * learns: a model is one logit for each token and does not read its prompt. Run it:
 *
 *     npx drmas train examples/plug-ins/own-backend.ts
 *
 * `ListPolicy` has all methods of a model but the mathematics. A backend for your server or library implements
 * `PolicyHandle` instead, and gives `open` in place of `policy`. `capabilities` lists its abilities: drmas refuses a
 * recipe that needs more before the run starts.
 */
import { defineRecipe } from 'drmas';
import { defineBackend, ListPolicy } from 'drmas/backends';
import { model, tasks, team } from './digits.js';

class Unigram extends ListPolicy {
  /** The logits z, one for each token: all tokens are equally likely at first. */
  protected firstValues(vocabSize: number) {
    return new Array<number>(vocabSize).fill(0);
  }

  /** log p(token) = z - log sum exp z. */
  protected nextLogprobs(logits: readonly number[]) {
    const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
    return logits.map((logit) => logit - total);
  }

  /** d log p(token) / d z = 1 at the token - p. */
  protected slopes(logits: readonly number[], _before: ArrayLike<number>, token: number) {
    return this.nextLogprobs(logits).map((logprob, t) => (t === token ? 1 : 0) - Math.exp(logprob));
  }
}

export const unigrams = defineBackend({
  type: 'unigrams',
  capabilities: Unigram.capabilities,
  policy: (weights, name, { files }) => new Unigram(name, weights, files),
});

export default defineRecipe({
  team,
  tasks,
  model,
  use: [unigrams],
  backend: { type: 'unigrams' },
  policies: { writer: { optimizer: { type: 'sgd', learningRate: 3 } } },
  training: { steps: 10, tasksPerStep: 4, groupSize: 8 },
  evaluation: { tasks: 16, samples: 1 },
});
