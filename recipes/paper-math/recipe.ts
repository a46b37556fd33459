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

const agents = { sampling: { maxTokens: 4096 }, promptLimit: { tokens: 8192, cut: 'middle' as const } };
/** The original leaves out problems that are too long, of training and of evaluation (`filter_overlong_prompts`). */
const shorter = { maxQuestionTokens: 8192 };
const policy = {
  optimizer: { learningRate: 1e-6, beta1: 0.9, beta2: 0.999, weightDecay: 0.01 },
  warmupSteps: 0,
  clipNorm: 1,
};

export default defineRecipe({
  // The original's rules and prompts, held to transcripts of its code.
  team: solverVerifier({
    form: 'paper',
    prompts: 'paper',
    maxLoops: 2,
    invalidPenalty: 0.1,
  }),
  tasks: {
    train: file('data/dapo-math.parquet', { ...shorter, origin: 'aaabiao/dapo_filter:train' }),
    test: {
      aime24: file('data/aime24.parquet', { ...shorter, origin: 'HuggingFaceH4/aime_2024:train' }),
      aime25: file('data/aime25.parquet', { ...shorter, origin: 'MathArena/aime_2025:train' }),
      amc23: file('data/amc23.parquet', { ...shorter, origin: 'knoveleng/AMC-23:train' }),
      math500: file('data/math500.jsonl', { ...shorter, origin: 'HuggingFaceH4/MATH-500:test' }),
      minerva: file('data/minerva.parquet', { ...shorter, origin: 'zwhe99/simplerl-minerva-math:test' }),
      olympiadbench: file('data/olympiadbench.parquet', { ...shorter, origin: 'realtreetune/olympiadbench:test' }),
    },
  },
  model: checkpoint('Qwen/Qwen3-4B', { variables: { enable_thinking: false } }),
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
