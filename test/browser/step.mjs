/**
 * One training step of a small decoder on the WebAssembly kernels, by modules from dist/, for Node and browsers alike.
 */
import { RandomStream } from '../../packages/engine/dist/base/core/random.js';
import { PolicyModel } from '../../packages/engine/dist/model/decoder/policy-model.js';

const config = {
  vocabSize: 37,
  width: 48,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headDim: 12,
  feedForward: 100,
  context: 64,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};

/** The loss (nats a token) before and after. Disposes of the kernels. */
export async function trainingStep(kernels) {
  const model = new PolicyModel(kernels, config);
  model.initialise(1);
  const random = new RandomStream('browser test');
  const sequences = [5, 64, 33, 1, 17].map((length) => ({
    tokens: Int32Array.from({ length }, () => random.integer(0, config.vocabSize - 1)),
    mask: new Uint8Array(length).fill(1).fill(0, 0, 1),
    temperature: 1,
  }));
  const targets = sequences.reduce((sum, { tokens }) => sum + tokens.length - 1, 0);
  const loss = async () => {
    const { logprobs } = await model.score(sequences);
    return logprobs.reduce((sum, row) => sum - row.reduce((a, b) => a + b, 0), 0) / targets;
  };
  const before = await loss();
  await model.accumulate(sequences, (indices) =>
    indices.map((i) => new Float32Array(sequences[i].tokens.length).fill(-1 / targets)),
  );
  const optimizer = { type: 'adamw', learningRate: 1e-2, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 };
  await model.optimStep({ optimizer, clipNorm: 1 });
  const after = await loss();
  kernels.dispose();
  return { before, after };
}
