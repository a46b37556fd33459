import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { WeightsSpec } from '../contract/weights-spec.js';
import { BackendError, CheckpointError } from '../errors.js';
import { randomKey } from '../math.js';
import { createTokenizer } from '../model/tokenizers/create-tokenizer.js';
import { nodeFiles, nodeHost } from '../platform.js';
import { defineBackend } from './backend-declaration.js';
import { ListPolicy } from './list-policy.js';

const root = mkdtempSync(join(tmpdir(), 'drmas-list-policy-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const tokenizer = createTokenizer({
  type: 'symbols',
  symbols: ['a', 'b', '.'],
  stop: '.',
  endOfUser: '.',
  endOfAssistant: '.',
});
const V = tokenizer.vocabSize;
const config = { vocabSize: V, context: 12 } as Extract<WeightsSpec, { type: 'random' }>['config'];
const random: WeightsSpec = { type: 'random', config, tokenizer, seed: 1 };

/** A row of logits [V] for each token before. */
class Bigram extends ListPolicy {
  protected firstValues(vocabSize: number) {
    return Array.from({ length: vocabSize ** 2 }, (_, p) => Math.sin(p));
  }
  protected nextLogprobs(values: readonly number[], before: ArrayLike<number>) {
    const last = before[before.length - 1] as number;
    const row = values.slice(last * V, (last + 1) * V);
    const total = Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0));
    return row.map((logit) => logit - total);
  }
  protected slopes(values: readonly number[], before: ArrayLike<number>, token: number) {
    const all = values.map(() => 0);
    const last = before[before.length - 1] as number;
    for (const [t, logprob] of this.nextLogprobs(values, before).entries())
      all[last * V + t] = Number(t === token) - Math.exp(logprob);
    return all;
  }
}
class Other extends Bigram {}

const opened = (weights: WeightsSpec = random) => new Bigram('writer', weights, nodeFiles);
const request = (n: number, temperature: number) => ({
  prompt: [0],
  temperature,
  topP: 1,
  topK: 0,
  maxTokens: 1,
  stopTokens: [2],
  key: randomKey('list policy', n),
});
const sgd = (learningRate: number) => ({ optimizer: { type: 'sgd', learningRate }, clipNorm: 0 });

async function sampleOf(policy: ListPolicy) {
  const sample = {
    tokens: Int32Array.of(0, 1, 1, 2),
    mask: Uint8Array.of(0, 1, 1, 1),
    advantages: Float32Array.of(0, 1, 1, -0.5),
    behaviourLogprobs: new Float32Array(4),
    temperature: 1,
    policyVersion: 0,
    agent: 'writer',
  };
  const [behaviourLogprobs = new Float32Array(4)] = await policy.logprobs([sample]);
  return { ...sample, behaviourLogprobs };
}
const options = { loss: { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' }, normalizer: 3 } as const;

describe('a policy of numbers', () => {
  it('computes the gradient of the loss: a small step lowers the loss by rate x norm^2', async () => {
    const policy = opened();
    const sample = await sampleOf(policy);
    const before = await policy.forwardBackward([sample], options);
    await policy.optimStep(sgd(1e-3));
    const after = await policy.forwardBackward([sample], options);
    const predicted = 1e-3 * (before.gradientNorm as number) ** 2;
    expect(predicted).toBeGreaterThan(1e-5);
    expect((before.loss - after.loss) / predicted).toBeCloseTo(1, 2);
  });

  it('samples in proportion to its probabilities, the most probable token at temperature 0', async () => {
    const policy = opened();
    await policy.publish();
    const counts = new Array<number>(V).fill(0);
    const probabilities: number[] = [];
    for (let n = 0; n < 3000; n++) {
      const { tokens, logprobs } = await policy.generate(request(n, 0.5));
      const [token = -1, logprob = 0] = [tokens[0], logprobs[0]];
      counts[token] = (counts[token] as number) + 1;
      probabilities[token] = Math.exp(logprob);
    }
    for (const [token, count] of counts.entries()) expect(count / 3000).toBeCloseTo(probabilities[token] as number, 1);
    expect(probabilities.reduce((sum, each) => sum + each, 0)).toBeCloseTo(1, 6);
    const { tokens } = await policy.generate(request(0, 0));
    expect(tokens).toEqual([counts.indexOf(Math.max(...counts))]);
    await expect(policy.generate({ ...request(0, 1), topK: 1 })).rejects.toThrow('expected topP 1 and topK 0');
  });

  it('plays what was published last, not what it learns', async () => {
    const policy = opened();
    await expect(policy.generate(request(1, 1))).rejects.toThrow(BackendError);
    await policy.publish();
    const first = await policy.generate(request(1, 1));
    await policy.forwardBackward([await sampleOf(policy)], options);
    await policy.optimStep(sgd(5));
    expect(await policy.generate(request(1, 1))).toEqual(first);
    expect(await policy.publish()).toBe(1);
    expect((await policy.generate(request(1, 1))).logprobs).not.toEqual(first.logprobs);
  });

  it('clips, and skips updates above a norm', async () => {
    const [clipped, scaled] = [opened(), opened()];
    const sample = await sampleOf(clipped);
    const { gradientNorm: norm = 0 } = await clipped.forwardBackward([sample], options);
    await scaled.forwardBackward([sample], options);
    await clipped.optimStep({ ...sgd(1), clipNorm: norm / 4 });
    await scaled.optimStep(sgd(1 / 4));
    expect((await clipped.logprobs([sample]))[0]).toEqual((await scaled.logprobs([sample]))[0]);
    await clipped.forwardBackward([sample], options);
    const skipped = await clipped.optimStep({ ...sgd(1), skipAboveNorm: 1e-9 });
    expect(skipped).toMatchObject({ applied: false, why: 'above-limit' });
    expect((await clipped.logprobs([sample]))[0]).toEqual((await scaled.logprobs([sample]))[0]);
    expect(await clipped.optimStep(sgd(1))).toMatchObject({ applied: true, norm: 0 }); // the gradient was discarded
  });

  it('is saved, loaded and copied, and refuses what is not its own', async () => {
    const policy = opened();
    const sample = await sampleOf(policy);
    await policy.forwardBackward([sample], options);
    await policy.optimStep(sgd(1));
    await policy.save(root);
    const [loaded, copied] = [opened(), opened()];
    await loaded.load(root);
    await copied.copyFrom(policy);
    const rows = await policy.logprobs([sample]);
    expect(await loaded.logprobs([sample])).toEqual(rows);
    expect(await copied.logprobs([sample])).toEqual(rows);
    expect(await opened({ type: 'like', policy }).logprobs([sample])).toEqual(rows);
    writeFileSync(join(root, 'values.json'), '[1, 2]');
    await expect(loaded.load(root)).rejects.toThrow(CheckpointError);
    await expect(loaded.copyFrom(new Other('other', random, nodeFiles))).rejects.toThrow(
      "'other' is of another backend",
    );
    expect(() => opened({ type: 'directory', directory: root })).toThrow("no weights of type 'directory'");
  });
});

it('makes a backend with nothing to start, which has no critics', async () => {
  const declared = defineBackend({
    type: 'bigrams',
    capabilities: ListPolicy.capabilities,
    policy: (weights, name, { files }) => new Bigram(name, weights, files),
  });
  const backend = await declared.open({ type: 'bigrams' }, { host: nodeHost(), models: [] });
  expect(backend.hardware).toEqual({ kernels: 'bigrams', isa: 'typescript' });
  expect((await backend.open(random, 'frozen', 'judge')).name).toBe('judge');
  await expect(backend.open(random, 'critic', 'judge')).rejects.toThrow("'bigrams' has no critics");
  const empty = { type: 'empty', capabilities: ListPolicy.capabilities };
  expect(() => defineBackend(empty)).toThrow("the backend 'empty' has neither `open` nor `policy`");
});

it('asks a subclass for its first numbers when the subclass has its own fields', async () => {
  class WithFields extends Bigram {
    readonly #scale = 0.5;
    protected override firstValues(vocabSize: number) {
      return super.firstValues(vocabSize).map((value) => this.#scale * value);
    }
  }
  const policy = new WithFields('scaled', random, nodeFiles);
  expect(policy.parameters).toBe(V ** 2);
  await policy.publish();
  expect((await policy.generate(request(1, 1))).tokens).toHaveLength(1);
});
