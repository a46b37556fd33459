import type { HostKernels } from '../kernels.js';

/** The softmax of a row of logits: z = logits · inverseTemperature, Σ exp(z − max z). */
interface Softmax {
  readonly max: number;
  readonly sum: number;
}

/** Fills `weights` [vocabSize] with exp(z − max z). */
function softmax(
  weights: Float64Array,
  logits: Float32Array,
  at: number,
  inverseTemperature: number,
  vocabSize: number,
): Softmax {
  let max = Number.NEGATIVE_INFINITY;
  for (let v = 0; v < vocabSize; v++) {
    const z = (logits[at + v] as number) * inverseTemperature;
    if (z > max) max = z;
  }
  let sum = 0;
  for (let v = 0; v < vocabSize; v++) {
    const weight = Math.exp((logits[at + v] as number) * inverseTemperature - max);
    weights[v] = weight;
    sum += weight;
  }
  return { max, sum };
}

const logprob = (z: number, { max, sum }: Softmax) => z - max - Math.log(sum);

export const tokenLogprobs: HostKernels['tokenLogprobs'] = ({
  logprobs,
  logSumExp,
  entropy,
  logits,
  targets,
  inverseTemperature,
  rows,
  vocabSize,
}) => {
  const weights = new Float64Array(vocabSize);
  for (let row = 0; row < rows; row++) {
    const at = row * vocabSize;
    const scale = inverseTemperature[row] as number;
    const normaliser = softmax(weights, logits, at, scale, vocabSize);
    let mean = 0;
    for (let v = 0; v < vocabSize; v++) {
      mean += (weights[v] as number) * ((logits[at + v] as number) * scale - normaliser.max);
    }
    logprobs[row] = logprob((logits[at + (targets[row] as number)] as number) * scale, normaliser);
    logSumExp[row] = normaliser.max + Math.log(normaliser.sum);
    entropy[row] = Math.log(normaliser.sum) - mean / normaliser.sum;
  }
};

export const tokenLogprobsBackward: HostKernels['tokenLogprobsBackward'] = ({
  logits,
  dLogprobs,
  logSumExp,
  targets,
  inverseTemperature,
  rows,
  vocabSize,
}) => {
  for (let row = 0; row < rows; row++) {
    const at = row * vocabSize;
    const scale = inverseTemperature[row] as number;
    const change = (dLogprobs[row] as number) * scale;
    const target = targets[row] as number;
    for (let v = 0; v < vocabSize; v++) {
      const p = Math.exp((logits[at + v] as number) * scale - (logSumExp[row] as number));
      logits[at + v] = change * ((v === target ? 1 : 0) - p);
    }
  }
};

export const tokenEntropyBackward: HostKernels['tokenEntropyBackward'] = ({
  logits,
  dLogprobs,
  dEntropy,
  logSumExp,
  entropy,
  targets,
  inverseTemperature,
  rows,
  vocabSize,
}) => {
  for (let row = 0; row < rows; row++) {
    const at = row * vocabSize;
    const scale = inverseTemperature[row] as number;
    const change = (dLogprobs[row] as number) * scale;
    const spread = (dEntropy[row] as number) * scale;
    const target = targets[row] as number;
    for (let v = 0; v < vocabSize; v++) {
      const logP = (logits[at + v] as number) * scale - (logSumExp[row] as number);
      const p = Math.exp(logP);
      logits[at + v] = change * ((v === target ? 1 : 0) - p) - spread * p * (logP + (entropy[row] as number));
    }
  }
};

function mostProbable(logits: Float32Array, at: number, vocabSize: number): number {
  let best = 0;
  for (let v = 1; v < vocabSize; v++) {
    if ((logits[at + v] as number) > (logits[at + best] as number)) best = v;
  }
  return best;
}

/** Sets the weight of each token to 0 that topK, then topP (a share of the tokens that topK kept) removes. */
function truncate(weights: Float64Array, logits: Float32Array, at: number, topK: number, topP: number): void {
  const order = Uint32Array.from(weights.keys()).sort(
    (a, b) => (logits[at + b] as number) - (logits[at + a] as number) || a - b,
  );
  let kept = topK > 0 ? Math.min(topK, order.length) : order.length;
  if (topP < 1) {
    let total = 0;
    for (let i = 0; i < kept; i++) total += weights[order[i] as number] as number;
    let reached = 0;
    for (let i = 0; i < kept; i++) {
      reached += weights[order[i] as number] as number;
      if (reached >= topP * total) kept = i + 1;
    }
  }
  for (let i = kept; i < order.length; i++) weights[order[i] as number] = 0;
}

/** The first token, in order of id, at which the running sum of weights exceeds the share `uniform` of their total. */
function invert(weights: Float64Array, uniform: number): number {
  let total = 0;
  for (let v = 0; v < weights.length; v++) total += weights[v] as number;
  let sum = 0;
  let last = 0;
  for (let v = 0; v < weights.length; v++) {
    const weight = weights[v] as number;
    if (weight === 0) continue;
    sum += weight;
    last = v;
    if (sum > uniform * total) break;
  }
  return last;
}

export const sampleTokens: HostKernels['sampleTokens'] = ({
  tokens,
  logprobs,
  logits,
  uniforms,
  inverseTemperature,
  topK,
  topP,
  rows,
  vocabSize,
}) => {
  const weights = new Float64Array(vocabSize);
  for (let row = 0; row < rows; row++) {
    const at = row * vocabSize;
    const greedy = inverseTemperature[row] === 0;
    const scale = greedy ? 1 : (inverseTemperature[row] as number);
    const normaliser = softmax(weights, logits, at, scale, vocabSize);
    let token: number;
    if (greedy) {
      token = mostProbable(logits, at, vocabSize);
    } else {
      const k = topK[row] as number;
      const p = topP[row] as number;
      if ((k > 0 && k < vocabSize) || p < 1) truncate(weights, logits, at, k, p);
      token = invert(weights, uniforms[row] as number);
    }
    tokens[row] = token;
    logprobs[row] = logprob((logits[at + token] as number) * scale, normaliser);
  }
};
