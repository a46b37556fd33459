import { describe, it } from 'vitest';
import {
  blank,
  body,
  close,
  differences,
  floats,
  get,
  integers,
  noise,
  pickRows,
  ROWS,
  randomIntegers,
  type Subject,
  sameBits,
} from './support.js';

const VOCAB_SIZES = [1, 2, 5, 32, 139, 1000];

/** z − log Σ exp z for z = logits · inverseTemperature, and the values computed from it. */
export function logSoftmax(logits: ArrayLike<number>, inverseTemperature: number) {
  const z = Float64Array.from(logits, (logit) => logit * inverseTemperature);
  const max = z.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const logSumExp = max + Math.log(z.reduce((sum, value) => sum + Math.exp(value - max), 0));
  const logprobs = z.map((value) => value - logSumExp);
  const entropy = -logprobs.reduce((sum, logprob) => sum + Math.exp(logprob) * logprob, 0);
  return { logSumExp, logprobs, entropy };
}

export function logprobContract(subject: Subject): void {
  const run = (
    logits: Float32Array,
    targets: ArrayLike<number>,
    inverseTemperature: Float32Array,
    vocabSize: number,
  ) => {
    const rows = targets.length;
    const logprobs = blank(subject(), rows);
    const logSumExp = blank(subject(), rows);
    const entropy = blank(subject(), rows);
    subject().tokenLogprobs({
      logprobs,
      logSumExp,
      entropy,
      logits: floats(subject(), logits),
      targets: integers(subject(), targets),
      inverseTemperature: floats(subject(), inverseTemperature),
      rows,
      vocabSize,
    });
    return { logprobs, logSumExp, entropy };
  };

  const backward = (
    logits: Float32Array,
    dLogprobs: Float32Array,
    logSumExp: Float32Array,
    targets: ArrayLike<number>,
    inverseTemperature: Float32Array,
    vocabSize: number,
  ) => {
    const changed = floats(subject(), logits);
    subject().tokenLogprobsBackward({
      logits: changed,
      dLogprobs: floats(subject(), dLogprobs),
      logSumExp,
      targets: integers(subject(), targets),
      inverseTemperature: floats(subject(), inverseTemperature),
      rows: targets.length,
      vocabSize,
    });
    return changed;
  };

  const inputs = (rows: number, vocabSize: number, size: number) => ({
    logits: noise(rows * vocabSize, 'logits', size),
    targets: randomIntegers(rows, vocabSize, 'targets'),
    scales: temperatures(rows),
    dLogprobs: noise(rows, 'dLogprobs'),
    dEntropy: noise(rows, 'dEntropy'),
  });

  const entropyBackward = (
    logits: Float32Array,
    dLogprobs: Float32Array,
    dEntropy: Float32Array,
    targets: Int32Array,
    inverseTemperature: Float32Array,
    vocabSize: number,
  ) => {
    const { logSumExp, entropy } = run(logits, targets, inverseTemperature, vocabSize);
    const changed = floats(subject(), logits);
    subject().tokenEntropyBackward({
      logits: changed,
      dLogprobs: floats(subject(), dLogprobs),
      dEntropy: floats(subject(), dEntropy),
      logSumExp,
      entropy,
      targets: integers(subject(), targets),
      inverseTemperature: floats(subject(), inverseTemperature),
      rows: targets.length,
      vocabSize,
    });
    return changed;
  };

  const temperatures = (rows: number) => noise(rows, 'temperature', 0.5).map((value) => value + 1);

  describe('tokenLogprobs', () => {
    it('is the log-softmax of the target, with its normaliser and entropy', () => {
      for (const vocabSize of VOCAB_SIZES) {
        for (const rows of ROWS) {
          const logits = noise(rows * vocabSize, 'logits', 8);
          const targets = randomIntegers(rows, vocabSize, 'targets');
          const scales = temperatures(rows);
          const { logprobs, logSumExp, entropy } = run(logits, targets, scales, vocabSize);
          const expected = Array.from(targets, (target, row) => {
            const softmax = logSoftmax(pickRows(logits, [row], vocabSize), get(scales, row));
            return [get(softmax.logprobs, target), softmax.logSumExp, softmax.entropy] as const;
          });
          close(
            logprobs,
            expected.map(([logprob]) => logprob),
            5e-6,
            `log-probs ${rows} x ${vocabSize}`,
          );
          close(
            logSumExp,
            expected.map(([, normaliser]) => normaliser),
            2e-6,
            'log-sum-exp',
          );
          close(
            entropy,
            expected.map(([, , nats]) => nats),
            1e-5,
            'entropy',
          );

          const last = rows - 1;
          const rowLogits = pickRows(logits, [last], vocabSize);
          const alone = run(rowLogits, targets.subarray(last), scales.subarray(last), vocabSize);
          sameBits(body(alone.logprobs), body(logprobs).subarray(last), 'log-prob of the last row alone');
          sameBits(body(alone.logSumExp), body(logSumExp).subarray(last), 'its log-sum-exp');
          sameBits(body(alone.entropy), body(entropy).subarray(last), 'its entropy');
        }
      }
    });

    it('stands logits of ten thousand', () => {
      const logits = Float32Array.of(1e4, -1e4, 9999, 0, -1e4, -1e4, -1e4, -1e4, -9998, -1e4);
      const { logprobs, logSumExp, entropy } = run(logits, [0, 3], Float32Array.of(1, 1), 5);
      const first = logSoftmax(logits.subarray(0, 5), 1);
      const second = logSoftmax(logits.subarray(5), 1);
      // A float32 near 10000 has a spacing of 0.001.
      close(logprobs, [get(first.logprobs, 0), get(second.logprobs, 3)], 1e-3, 'log-probs');
      close(logSumExp, [first.logSumExp, second.logSumExp], 1e-6, 'log-sum-exp');
      close(entropy, [first.entropy, second.entropy], 1e-3, 'entropy');
    });

    it('has the gradient of its formula', () => {
      for (const vocabSize of [1, 7, 32]) {
        const rows = 3;
        const logits = noise(rows * vocabSize, 'logits', 3);
        const targets = randomIntegers(rows, vocabSize, 'targets');
        const scales = temperatures(rows);
        const dLogprobs = noise(rows, 'dLogprobs');
        const { logSumExp } = run(logits, targets, scales, vocabSize);
        const changed = backward(logits, dLogprobs, logSumExp, targets, scales, vocabSize);
        const loss = (moved: Float64Array) =>
          Array.from(targets, (target, row) => {
            const rowLogits = moved.subarray(row * vocabSize, (row + 1) * vocabSize);
            return get(dLogprobs, row) * get(logSoftmax(rowLogits, get(scales, row)).logprobs, target);
          }).reduce((a, b) => a + b, 0);
        close(changed, differences(loss, logits), 1e-5, `gradient of ${vocabSize} logits`);
      }
    });

    it('has the gradient of its entropy too, if requested', () => {
      for (const vocabSize of [1, 7, 32]) {
        const rows = 3;
        const { logits, targets, scales, dLogprobs, dEntropy } = inputs(rows, vocabSize, 3);
        const changed = entropyBackward(logits, dLogprobs, dEntropy, targets, scales, vocabSize);
        const loss = (moved: Float64Array) =>
          Array.from(targets, (target, row) => {
            const softmax = logSoftmax(moved.subarray(row * vocabSize, (row + 1) * vocabSize), get(scales, row));
            return get(dLogprobs, row) * get(softmax.logprobs, target) + get(dEntropy, row) * softmax.entropy;
          }).reduce((a, b) => a + b, 0);
        close(changed, differences(loss, logits), 1e-5, `gradient of ${vocabSize} logits`);
      }
    });

    it('follows the formula of both gradients in large rows, the same bits wherever they stand', () => {
      const [rows, vocabSize] = [17, 1000];
      const { logits, targets, scales, dLogprobs, dEntropy } = inputs(rows, vocabSize, 8);
      const changed = entropyBackward(logits, dLogprobs, dEntropy, targets, scales, vocabSize);
      const expected = new Float64Array(rows * vocabSize);
      for (let row = 0; row < rows; row++) {
        const softmax = logSoftmax(pickRows(logits, [row], vocabSize), get(scales, row));
        softmax.logprobs.forEach((logprob, v) => {
          const hit = v === get(targets, row) ? 1 : 0;
          const p = Math.exp(logprob);
          const spread = get(dEntropy, row) * p * (logprob + softmax.entropy);
          expected[row * vocabSize + v] = get(scales, row) * (get(dLogprobs, row) * (hit - p) - spread);
        });
      }
      close(changed, expected, 5e-6, 'gradient');
      const last = rows - 1;
      const alone = entropyBackward(
        pickRows(logits, [last], vocabSize),
        dLogprobs.subarray(last),
        dEntropy.subarray(last),
        targets.subarray(last),
        scales.subarray(last),
        vocabSize,
      );
      sameBits(body(alone), pickRows(changed, [last], vocabSize), 'last row alone');
      const without = entropyBackward(logits, dLogprobs, dEntropy.fill(0), targets, scales, vocabSize);
      const { logSumExp } = run(logits, targets, scales, vocabSize);
      const plain = backward(logits, dLogprobs, logSumExp, targets, scales, vocabSize);
      sameBits(body(without), body(plain), 'without a gradient on the entropy');
    });

    it('gives large rows their gradient, the same bits wherever they stand', () => {
      const [rows, vocabSize] = [17, 1000];
      const logits = noise(rows * vocabSize, 'logits', 8);
      const targets = randomIntegers(rows, vocabSize, 'targets');
      const scales = temperatures(rows);
      const dLogprobs = noise(rows, 'dLogprobs');
      const { logSumExp } = run(logits, targets, scales, vocabSize);
      const changed = backward(logits, dLogprobs, logSumExp, targets, scales, vocabSize);
      const expected = new Float64Array(rows * vocabSize);
      for (let row = 0; row < rows; row++) {
        const softmax = logSoftmax(pickRows(logits, [row], vocabSize), get(scales, row));
        softmax.logprobs.forEach((logprob, v) => {
          const hit = v === get(targets, row) ? 1 : 0;
          expected[row * vocabSize + v] = get(dLogprobs, row) * get(scales, row) * (hit - Math.exp(logprob));
        });
      }
      close(changed, expected, 2e-6, 'gradient');
      const last = rows - 1;
      const alone = backward(
        pickRows(logits, [last], vocabSize),
        dLogprobs.subarray(last),
        floats(subject(), logSumExp.subarray(last, rows)),
        targets.subarray(last),
        scales.subarray(last),
        vocabSize,
      );
      sameBits(body(alone), pickRows(changed, [last], vocabSize), 'last row alone');
    });
  });
}
