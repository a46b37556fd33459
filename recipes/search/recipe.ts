/**
 * Three small models, a verifier, a searcher and an answerer, on questions of one to three hops over a generated
 * encyclopedia. The warm start teaches them to read; its demonstrators do not know the encyclopedia's wording, so most
 * of their searches miss. Reinforcement teaches the words that hit, when to stop, and to copy names exactly. Held-out
 * questions are about another encyclopedia, with no name in common.
 */
import { defineRecipe, searchTeam, tinyDecoder } from 'drmas';
import { encyclopediaSymbols } from './words.js';
import { encyclopedia, encyclopediaSearch } from './world.js';

export default defineRecipe({
  team: searchTeam(encyclopediaSearch),
  tasks: encyclopedia({ hops: [1, 1, 1] }),
  model: tinyDecoder({
    width: 64,
    layers: 2,
    heads: 4,
    feedForward: 160,
    context: 160,
    ropeBase: 1000,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: encyclopediaSymbols,
      stop: '<end>',
      endOfUser: ': ',
      endOfAssistant: '<end>',
    },
  }),
  agents: {
    verifier: { sampling: { maxTokens: 3 } },
    searcher: { sampling: { maxTokens: 8 } },
    answerer: { sampling: { maxTokens: 5 } },
  },
  policies: {
    // One word decides a whole episode: at the others' learning rate the verifier may collapse to never saying yes.
    verifier: { optimizer: { learningRate: 3e-4, beta2: 0.98 } },
    searcher: { optimizer: { learningRate: 1e-3, beta2: 0.98 } },
    answerer: { optimizer: { learningRate: 1e-3, beta2: 0.98 } },
  },
  // A model that cannot copy names yet cannot explore. The loss shows when it can, which depends on the seed.
  advantage: { type: 'drmas', singleton: 'zero' }, // as in the runs that are published
  warmStart: { steps: 1500, batch: 128, learningRate: 5e-3, finalLearningRate: 1, beta2: 0.98, lossTarget: 0.25 },
  training: { steps: 200, tasksPerStep: 16, groupSize: 8 },
  evaluation: { every: 40, tasks: 256, samples: 4, samplesDuring: 1 },
});
