/**
 * A solver and a verifier, each a LoRA adapter on Qwen3-0.6B, on grade-school word problems (GSM8K, Cobbe et al. 2021),
 * on a server that speaks the Tinker protocol. docs/real-models.md says how to have one, and where the two files come
 * from.
 *
 *     drmas plan examples/real-model/recipe.ts
 *     drmas train examples/real-model/recipe.ts --set backend.url=http://127.0.0.1:8000
 */
import { checkpoint, defineRecipe, file, lora, solverVerifier, tinker } from 'drmas';

/** Qwen3 thinks for thousands of tokens by default; this system prompt switches that off. */
const briefly = '/no_think';

export default defineRecipe({
  name: 'real-model',
  team: solverVerifier({
    maxLoops: 2,
    solver: { system: `Solve the problem step by step. End with the answer in \\boxed{...}. ${briefly}` },
    verifier: {
      system: `Check the solution step by step. End with <approve> if its answer is right, or with <reject> if not. ${briefly}`,
    },
  }),
  tasks: { train: file('gsm8k-train.parquet'), test: file('gsm8k-test.parquet') },
  model: lora(checkpoint('Qwen/Qwen3-0.6B'), { rank: 32 }),
  backend: tinker({ url: 'http://127.0.0.1:8000' }),
  agents: {
    solver: { sampling: { maxTokens: 512 } },
    verifier: { sampling: { maxTokens: 384 } },
  },
  policies: {
    solver: { optimizer: { learningRate: 1e-4 } },
    verifier: { optimizer: { learningRate: 1e-4 } },
  },
  training: { steps: 100, tasksPerStep: 16, groupSize: 8, checkpointEvery: 10 },
  evaluation: { every: 20, tasks: 256, samples: 4, samplesDuring: 1 },
});
