/**
 * The math experiment of the Dr. MAS paper (arXiv 2602.08847) with its settings, from its text and its code at 19c632b:
 * a solver and a verifier on Qwen3-4B, trained whole on DAPO's problems and evaluated on six benchmarks, 16 samples a
 * problem at temperature 0.6 and top-p 0.95. docs/the-paper.md says what differs and what has to be downloaded.
 *
 *     drmas plan paper-math
 *     drmas train paper-math --set assign=shared
 *     drmas train paper-math --set policies.verifier.model.path=Qwen/Qwen3-8B
 */
import { checkpoint, defineRecipe, file, solverVerifier } from 'drmas';

/** Qwen3's system prompt switches off its thinking for both agents. */
const briefly = '/no_think';

const agents = { sampling: { maxTokens: 4096 } };
const policy = {
  optimizer: { learningRate: 1e-6, beta1: 0.9, beta2: 0.999, weightDecay: 0.01 },
  warmupSteps: 0,
  clipNorm: 1,
};

export default defineRecipe({
  team: solverVerifier({
    maxLoops: 2,
    approve: '<verify>approve</verify>',
    reject: '<verify>reject</verify>',
    onUnreadableVerdict: 'approve',
    invalidPenalty: 0.1,
    solver: { system: `Solve the problem step by step. Give the final answer in \\boxed{...}. ${briefly}` },
    verifier: {
      system: `Check every step of the latest solution and its answer. End with <verify>approve</verify> if all of it is right, or with <verify>reject</verify> if anything is wrong. ${briefly}`,
    },
  }),
  tasks: {
    train: file('data/dapo-math.parquet'),
    test: {
      aime24: file('data/aime24.parquet'),
      aime25: file('data/aime25.parquet'),
      amc23: file('data/amc23.parquet'),
      math500: file('data/math500.jsonl'),
      minerva: file('data/minerva.parquet'),
      olympiadbench: file('data/olympiadbench.parquet'),
    },
  },
  model: checkpoint('Qwen/Qwen3-4B'),
  agents: { solver: agents, verifier: agents },
  policies: { solver: policy, verifier: policy },
  advantage: { type: 'drmas', singleton: 'raw', minimumSpread: 0 },
  loss: { type: 'ppo-clip', clip: 0.2, dualClip: 3 },
  // The original counts two epochs of its problems; the number of steps is this recipe's.
  training: { steps: 200, tasksPerStep: 32, groupSize: 8, failedEpisodes: 'zero', checkpointEvery: 10 },
  evaluation: {
    every: 10,
    tasks: 1000,
    samples: 16,
    samplesDuring: 1,
    sampling: { temperature: 0.6, topP: 0.95 },
  },
});
