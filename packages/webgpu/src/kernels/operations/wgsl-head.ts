import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import { grid, rowShader, shader, type WorkgroupCounts } from '../shader.js';
import { SOFTMAX, THREADS } from './wgsl-softmax.js';

type HeadKernels = Pick<DeviceKernels, 'tokenLogprobs' | 'tokenLogprobsBackward' | 'tokenEntropyBackward'>;

export function headKernels(queue: CommandQueue): HeadKernels {
  const blocks = (rows: number, vocabSize: number): WorkgroupCounts => [Math.ceil(vocabSize / THREADS), rows];
  return {
    tokenLogprobs: ({ logprobs, logSumExp, entropy, logits, targets, inverseTemperature, rows, vocabSize }) => {
      const memories = [logprobs, logSumExp, entropy, logits, targets, inverseTemperature];
      queue.run(forward, [rows, vocabSize], memories, grid(rows));
    },
    tokenLogprobsBackward: ({ logits, dLogprobs, logSumExp, targets, inverseTemperature, rows, vocabSize }) => {
      const memories = [logits, dLogprobs, logSumExp, targets, inverseTemperature];
      queue.run(backward, [vocabSize], memories, blocks(rows, vocabSize));
    },
    tokenEntropyBackward: ({
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
      const memories = [logits, dLogprobs, logSumExp, targets, inverseTemperature, dEntropy, entropy];
      queue.run(backwardWithEntropy, [vocabSize], memories, blocks(rows, vocabSize));
    },
  };
}

const forward = rowShader({
  name: 'log-probs',
  numbers: ['rows', 'vocab'],
  memories: ['logprobs', 'logSumExp', 'entropy', 'logits', 'targets: i32', 'inverseTemperature'],
  declare: SOFTMAX,
  threads: `${THREADS}`,
  rows: 'p.rows',
  body: `let at = r * p.vocab; let scale = inverseTemperature[r]; let s = softmax(t, at, scale);
  if (t == 0u) {
    logprobs[r] = logprob(at + u32(targets[r]), scale, s);
    logSumExp[r] = fma(s.top, scale, log(s.sum)); entropy[r] = log(s.sum) - s.mean / s.sum;
  }`,
});

/** A thread has an entry of the vocabulary, a row of groups a row. */
const change = (name: string, memories: readonly string[], more: string) =>
  shader({
    name,
    numbers: ['vocab'],
    memories: ['logits', 'dLogprobs', 'logSumExp', 'targets: i32', 'inverseTemperature', ...memories],
    threads: `${THREADS}`,
    body: `let v = group.x * ${THREADS}u + t; let r = group.y; if (v >= p.vocab) { return; }
  let at = r * p.vocab + v; let scale = inverseTemperature[r]; let lp = logits[at] * scale - logSumExp[r];
  let share = exp(lp); var d = dLogprobs[r] * scale * (select(0.0, 1.0, i32(v) == targets[r]) - share);
  ${more} logits[at] = d;`,
  });
const backward = change('log-probs backward', [], '');
const backwardWithEntropy = change(
  'entropies backward',
  ['dEntropy', 'entropy'],
  'd -= dEntropy[r] * scale * share * (lp + entropy[r]);',
);
