import type { Kernels } from '../../../src/tensor/kernels.js';
import { coarseNoise } from './bfloat16.js';
import { noise, randomIntegers } from './support.js';

/** Every operation once, at sizes of a small decoder, on inputs that depend on nothing: what it wrote, by name. */
export function everyOperation(kernels: Kernels): Map<string, Float32Array | Int32Array> {
  const outputs = new Map<string, Float32Array | Int32Array>();
  const zeros = (length: number) => kernels.allocate(length);
  const random = (length: number, key: string, spread = 1) => {
    const buffer = kernels.allocate(length);
    buffer.set(noise(length, key, spread));
    return buffer;
  };
  const integers = (values: ArrayLike<number>) => {
    const buffer = kernels.allocateIntegers(values.length);
    buffer.set(values);
    return buffer;
  };
  const keep = (name: string, ...written: (Float32Array | Int32Array)[]) => {
    for (const [i, buffer] of written.entries()) outputs.set(`${name} ${i}`, buffer);
  };

  const rows = 257;
  const [width, feedForward, vocabSize] = [64, 172, 139];
  const shape = { heads: 4, kvHeads: 2, headDim: 16 };
  const { heads, kvHeads, headDim } = shape;
  const capacity = 130;
  const x = random(rows * width, 'x');

  const packed = zeros(kernels.packedSize(width, feedForward));
  kernels.pack(packed, random(width * feedForward, 'weight'), width, feedForward, false);
  const hidden = zeros(rows * feedForward);
  kernels.linear(hidden, x, packed, rows, width, feedForward, false);
  const dWeight = random(width * feedForward, 'dWeight');
  kernels.linearWeightGradient(dWeight, x, hidden, rows, width, feedForward);
  keep('linear', hidden, dWeight);

  const coarse = (length: number, key: string) => {
    const buffer = kernels.allocateBfloat16(length);
    buffer.set(coarseNoise(length, key));
    return buffer;
  };
  const packedCoarse = kernels.allocateBfloat16(kernels.packedSize(width, feedForward));
  kernels.pack(packedCoarse, coarse(width * feedForward, 'weight'), width, feedForward, true);
  const hiddenCoarse = random(rows * feedForward, 'hidden');
  kernels.linear(hiddenCoarse, x, packedCoarse, rows, width, feedForward, true);
  keep('linear in bfloat16', hiddenCoarse);

  const gain = random(width, 'gain');
  const [normed, inverse] = [zeros(rows * width), zeros(rows)];
  kernels.rmsNorm(normed, inverse, x, gain, rows, width, 1e-5);
  const [dx, dGain] = [random(rows * width, 'dx'), random(width, 'dGain')];
  kernels.rmsNormBackward(dx, dGain, normed, x, gain, inverse, rows, width);
  keep('norm', normed, inverse, dx, dGain);

  const stride = (heads + 2 * kvHeads) * headDim;
  const qkv = random(rows * stride, 'qkv', 2);
  const [queryGain, keyGain] = [random(headDim, 'query gain'), random(headDim, 'key gain')];
  const [queryInverse, keyInverse] = [zeros(rows * heads), zeros(rows * kvHeads)];
  const [dQueryGain, dKeyGain] = [random(headDim, 'dQueryGain'), random(headDim, 'dKeyGain')];
  const [normedHeads, dHeads] = [random(rows * stride, 'heads', 2), random(rows * stride, 'dHeads')];
  kernels.headNorm(normedHeads, queryInverse, keyInverse, queryGain, keyGain, rows, shape, 1e-5);
  const inverses = [queryInverse, keyInverse] as const;
  kernels.headNormBackward(dHeads, dQueryGain, dKeyGain, qkv, queryGain, keyGain, ...inverses, rows, shape);
  keep('heads', normedHeads, ...inverses, dHeads, dQueryGain, dKeyGain);
  const table = random(capacity * headDim, 'table');
  const lengths = [1, 130, 96, 30];
  const starts = integers([0, 1, 131, 227, 257]);
  const positions = integers(lengths.flatMap((length) => Array.from({ length }, (_, t) => t)));
  const slots = integers(lengths.flatMap((length, s) => new Array<number>(length).fill(s)));
  kernels.rope(qkv, table, positions, rows, shape, false);
  const [attended, logSumExp] = [zeros(rows * heads * headDim), zeros(rows * heads)];
  kernels.attention(attended, logSumExp, qkv, starts, lengths.length, shape);
  const dQkv = zeros(rows * stride);
  const dAttended = random(rows * heads * headDim, 'dAttended');
  kernels.attentionBackward(dQkv, dAttended, attended, logSumExp, qkv, starts, lengths.length, shape);
  const slotSize = kernels.cacheSlotSize(capacity, shape) * 6;
  const [keys, values, cached] = [zeros(slotSize), zeros(slotSize), zeros(rows * heads * headDim)];
  kernels.attentionCached(cached, keys, values, qkv, slots, positions, rows, capacity, shape);
  kernels.cacheCopy(keys, values, 1, 5, 100, capacity, shape);
  const decoded = zeros(heads * headDim);
  const [slot, position] = [integers([5]), integers([100])];
  kernels.attentionCached(decoded, keys, values, qkv, slot, position, 1, capacity, shape);
  keep('attention', qkv, attended, logSumExp, dQkv, cached, decoded);

  const gateUp = random(rows * 2 * feedForward, 'gateUp', 5);
  const [gated, dGateUp] = [zeros(rows * feedForward), zeros(rows * 2 * feedForward)];
  kernels.swiglu(gated, gateUp, rows, feedForward);
  kernels.swigluBackward(dGateUp, hidden, gateUp, rows, feedForward);
  keep('gate', gated, dGateUp);

  const tokens = integers(randomIntegers(rows, vocabSize, 'tokens'));
  const embeddings = random(vocabSize * width, 'embeddings');
  const embedded = zeros(rows * width);
  kernels.embed(embedded, embeddings, tokens, rows, width);
  kernels.embedBackward(embeddings, x, tokens, rows, width);
  const embeddedCoarse = zeros(rows * width);
  kernels.embed(embeddedCoarse, coarse(vocabSize * width, 'embeddings'), tokens, rows, width);
  keep('embedding', embedded, embeddings, embeddedCoarse);

  const logits = random(rows * vocabSize, 'logits', 6);
  const scales = random(rows, 'temperature', 0.5);
  for (let r = 0; r < rows; r++) scales[r] = r % 7 === 0 ? 0 : (scales[r] as number) + 1;
  const uniforms = zeros(rows);
  uniforms.set(noise(rows, 'uniforms', 0.5).map((value) => value + 0.5));
  const topK = integers(randomIntegers(rows, 20, 'topK'));
  const topP = zeros(rows).fill(0.95);
  const [sampled, logprobs] = [kernels.allocateIntegers(rows), zeros(rows)];
  kernels.sampleTokens(sampled, logprobs, logits, uniforms, scales, topK, topP, rows, vocabSize);
  const [again, normaliser, entropy] = [zeros(rows), zeros(rows), zeros(rows)];
  kernels.tokenLogprobs(again, normaliser, entropy, logits, tokens, scales, rows, vocabSize);
  const spread = zeros(rows * vocabSize);
  spread.set(logits);
  kernels.tokenEntropyBackward(spread, x, hidden, normaliser, entropy, tokens, scales, rows, vocabSize);
  kernels.tokenLogprobsBackward(logits, x, normaliser, tokens, scales, rows, vocabSize);
  keep('head', sampled, logprobs, again, normaliser, entropy, spread, logits);

  const size = rows * width;
  const [weights, first, second] = [random(size, 'weights'), random(size, 'm'), random(size, 'v', 0.25)];
  for (let i = 0; i < size; i++) second[i] = Math.abs(second[i] as number);
  const squares = kernels.sumOfSquares(x, size);
  kernels.add(dx, x, size);
  kernels.adamw(weights, x, first, second, size, {
    learningRate: 1e-3,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weightDecay: 0.01,
    step: 3,
    gradientScale: 0.7,
  });
  keep('optimiser', Float32Array.of(squares), dx, weights, first, second);
  return outputs;
}
