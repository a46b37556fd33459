import type { GenerateRequest, OptimizerSettings, WeightsSpec } from '@drmas/engine/contract';
import { ArgumentError } from '@drmas/engine/errors';
import { createReferenceKernels } from '@drmas/engine/kernels';
import { randomKey } from '@drmas/engine/math';
import type { ChoiceTableSpec, Sequence } from '@drmas/engine/model';
import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { backendContract } from '../../../test/contracts/backend/index.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { ChoiceTable } from './choice-table.js';
import { TableBackend } from './table-backend.js';

const shape = { choices: ['ask', 'skip', 'wait'], features: ['easy', 'hard'], length: 1 };
const [EASY, HARD] = [3, 4];

/** A table with logits that are all different. */
function table(length = 1): ChoiceTable {
  const wavy = new ChoiceTable(createReferenceKernels(), { ...shape, length });
  wavy.values.forEach((_, i) => {
    wavy.values[i] = Math.sin(i + 1);
  });
  return wavy;
}

const chosen = (feature: number, ...choices: readonly number[]): Sequence => ({
  tokens: Int32Array.from([feature, ...choices]),
  mask: Uint8Array.from([0, ...choices.map(() => 1)]),
  temperature: 0.8,
});

const request = (n: number, changes: Partial<GenerateRequest> = {}): GenerateRequest => ({
  prompt: [EASY],
  stopTokens: [],
  key: randomKey('table', n),
  temperature: 1,
  topP: 1,
  topK: 0,
  maxTokens: 1,
  ...changes,
});

describe('a table of choices', () => {
  it.each([
    ['one choice', 1, [chosen(EASY, 0), chosen(HARD, 2), chosen(EASY, 1)]],
    ['choices that follow each other', 3, [chosen(EASY, 0, 2, 2), chosen(HARD, 1, 0)]],
  ] as const)('has the gradient of log-probs and entropies: %s', async (_, length, sequences) => {
    const [weight, entropyWeight] = [0.7, -0.3];
    const lossOf = async (each: ChoiceTable) => {
      const { logprobs, entropies } = await each.score(sequences);
      const total = (rows: readonly Float32Array[]) => rows.reduce((sum, row) => row.reduce((a, b) => a + b, sum), 0);
      return weight * total(logprobs) + entropyWeight * total(entropies);
    };
    const ones = (scale: number) => (indices: readonly number[]) =>
      indices.map((i) => Float32Array.from(sequences[i]?.mask ?? [], (written) => written * scale));
    const trained = table(length);
    const { gradientNorm } = await trained.accumulate(sequences, ones(weight), ones(entropyWeight));
    expect(gradientNorm).toBeCloseTo(Math.hypot(...trained.gradient), 6);
    const h = 1e-2;
    for (const i of trained.values.keys()) {
      const [up, down] = [table(length), table(length)];
      up.values[i] = (up.values[i] as number) + h;
      down.values[i] = (down.values[i] as number) - h;
      expect(trained.gradient[i]).toBeCloseTo(((await lossOf(up)) - (await lossOf(down))) / (2 * h), 3);
    }
  });

  it('moves towards the better choice of a feature, and leaves the other features alone', async () => {
    const trained = new ChoiceTable(createReferenceKernels(), shape);
    const optimizer: OptimizerSettings = { type: 'sgd', learningRate: 1, momentum: 0, nesterov: false, weightDecay: 0 };
    await trained.accumulate([chosen(HARD, 1)], () => [Float32Array.of(0, -1)]);
    await trained.optimStep({ optimizer, clipNorm: 0 });
    const [first, ...rows] = [0, 1].map((row) => [...trained.values.subarray(row * 3, row * 3 + 3)]);
    expect(first).toEqual([0, 0, 0]);
    expect(rows[0]?.[1]).toBeGreaterThan(0);
    expect(rows[0]?.[0]).toBeLessThan(0);
    expect(rows[0]?.[0]).toBe(rows[0]?.[2]);
  });

  it('samples choices with its probabilities', async () => {
    const each = table();
    const draws = Array.from({ length: 4000 }, (_, n) => each.sample(each.values, request(n)));
    for (const choice of [0, 1, 2]) {
      const ofChoice = draws.filter(({ tokens }) => tokens[0] === choice);
      const probability = Math.exp(ofChoice[0]?.logprobs[0] as number);
      expect(Math.abs(ofChoice.length / draws.length - probability)).toBeLessThan(
        4 * Math.sqrt((probability * (1 - probability)) / draws.length),
      );
    }
    expect(draws[0]).toMatchObject({ finishReason: 'stop', tokens: { length: 1 } });
  });

  it('refuses a token without a row, and a token that is no choice', async () => {
    expect(() => table().sample(table().values, request(1, { prompt: [0] }))).toThrow(ArgumentError);
    await expect(table().score([chosen(EASY, HARD)])).rejects.toThrow('token 4 is no choice of 3');
    await expect(table().score([chosen(EASY, 0, 1)])).rejects.toThrow(/token 0 has no row/);
  });
});

describe('table contract', () => {
  const bytes = Array.from({ length: 256 }, (_, i) => `choice ${i}`);
  const table = (choices: readonly string[], length: number): WeightsSpec => {
    const model: ChoiceTableSpec = {
      type: 'choice-table',
      choices,
      features: ['task 0', 'task 1', 'task 2'],
      length,
    };
    return { type: 'of-kind', model };
  };

  backendContract('a table of choices', {
    open: async () => new TableBackend(nodeFiles),
    weights: () => table(bytes, 63),
    misfit: table(['a', 'b'], 2),
    learns: 0.1,
    sameForEverySeed: true,
    mayStillAnswer: true,
    root: temporaryRoot(),
  });
});
