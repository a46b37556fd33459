/**
 * Two small models, a solver and a verifier, on pocket-calculator chains. The warm start teaches both to calculate from
 * correct demonstrations; only some of these show their work. Reinforcement teaches the solver to show its work, and
 * the verifier to distinguish right drafts from wrong ones. The verifier earns 0.1 for a true verdict, a usual size for
 * a shaping reward. A second attempt costs the team 0.1, so that rejecting all drafts does not pay.
 */
import { arithmetic, arithmeticSymbols, defineRecipe, solverVerifier, tinyDecoder } from 'drmas';

export default defineRecipe({
  team: solverVerifier({
    maxLoops: 2,
    approve: '<approve>',
    reject: '<reject>',
    solver: { system: '<solver>' },
    verifier: { system: '<verifier>' },
    verdictReward: 0.1,
    attemptCost: 0.1,
  }),
  tasks: arithmetic({ operations: [4, 6], warmStartOperations: [3, 6] }),
  model: tinyDecoder({
    width: 64,
    layers: 3,
    heads: 4,
    feedForward: 176,
    context: 128,
    tokenizer: {
      type: 'symbols',
      symbols: arithmeticSymbols,
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  agents: {
    solver: { sampling: { maxTokens: 48 } },
    verifier: { sampling: { maxTokens: 4 } },
  },
  advantage: { type: 'drmas', singleton: 'zero' }, // as in the runs that are published
  warmStart: { steps: 2000, batch: 64, learningRate: 8e-3, lossTarget: 0.1 },
  training: { steps: 60, tasksPerStep: 16, groupSize: 8 },
  evaluation: { every: 20, tasks: 256, samples: 4 },
});
