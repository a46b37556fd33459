import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DecoderConfig } from '../../src/contract/architecture.js';
import type { TrainBackend } from '../../src/contract/backend.js';
import type { GenerateRequest, Generation, SampleBackend } from '../../src/contract/sampling.js';
import { BackendError, CheckpointError } from '../../src/core/errors.js';
import { RandomStream, randomKey } from '../../src/core/random.js';
import type { TrainingSample } from '../../src/core/sample.js';
import type { LossSpec } from '../../src/loss/loss-spec.js';
import { normalizerOf } from '../../src/loss/objective/merged-samples.js';
import { bytesTokenizer } from '../../src/model/tokenizers/bytes.js';
import { plainAdamW } from '../support/adamw.js';

const tokenizer = bytesTokenizer();
const config: DecoderConfig = {
  vocabSize: tokenizer.vocabSize,
  width: 8,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 4,
  feedForward: 12,
  context: 32,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const optimizer = plainAdamW(1e-2);
const ppo = { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' } as const;
const crossEntropy = { type: 'demonstrations' } as const;

/** What every backend that trains and samples must do. `root` is a directory to write into. */
export function backendContract(name: string, open: () => Promise<TrainBackend & SampleBackend>, root: string): void {
  describe(`${name} keeps the backend contract`, () => {
    let backend: TrainBackend & SampleBackend;
    beforeAll(async () => {
      backend = await open();
    });
    afterAll(() => backend.dispose());

    let count = 0;
    const policy = async (seed = 1, changes: Partial<DecoderConfig> = {}) => {
      const id = `policy${count++}`;
      await backend.createPolicy(id, { type: 'random', config: { ...config, ...changes }, tokenizer, seed });
      return id;
    };
    const playing = async (seed = 1) => {
      const id = await policy(seed);
      await backend.publish(id);
      await backend.sync(id);
      return id;
    };
    const request = (id: string, n: number, changes: Partial<GenerateRequest> = {}): GenerateRequest => ({
      policy: id,
      prompt: tokenizer.encode(`task ${n % 3}`),
      temperature: 0.8,
      topP: 1,
      topK: 0,
      maxTokens: 10,
      stopTokens: tokenizer.stopTokens,
      key: randomKey('contract', n),
      ...changes,
    });
    const sampleOf = ({ prompt, temperature }: GenerateRequest, { tokens, logprobs }: Generation): TrainingSample => {
      const length = prompt.length + tokens.length;
      const behaviourLogprobs = new Float32Array(length);
      behaviourLogprobs.set(logprobs, prompt.length);
      return {
        tokens: Int32Array.from([...prompt, ...tokens]),
        mask: new Uint8Array(length).fill(1, prompt.length),
        behaviourLogprobs,
        advantages: new Float32Array(length).fill(tokens.length % 2 === 0 ? 1 : -0.5, prompt.length),
        temperature,
        policyVersion: 0,
        agent: 'agent',
      };
    };
    /** What a policy of the first seed writes. */
    const played = async (): Promise<TrainingSample[]> => {
      const id = await playing();
      const requests = [0, 1, 2, 3, 4, 5].map((n) => request(id, n));
      return Promise.all(requests.map(async (each) => sampleOf(each, await backend.generate(each))));
    };
    const demonstrations = (seed: number): TrainingSample[] => {
      const random = new RandomStream('demonstrations', seed);
      return Array.from({ length: 6 }, () => {
        const prompt = Array.from({ length: random.integer(1, 4) }, () => random.integer(0, 255));
        const tokens = Array.from({ length: random.integer(3, 9) }, () => random.integer(0, 255));
        const generation: Generation = {
          tokens,
          logprobs: tokens.map(() => -5),
          finishReason: 'stop',
          policyVersion: 0,
        };
        return sampleOf(request('', 0, { prompt, temperature: 1 }), generation);
      });
    };
    const written = (samples: readonly TrainingSample[]) =>
      samples.reduce((sum, { mask }) => sum + mask.reduce((n, one) => n + one, 0), 0);
    const learn = (id: string, samples: readonly TrainingSample[]) =>
      backend.forwardBackward(id, samples, { loss: crossEntropy, normalizer: written(samples) });
    const step = (id: string, settings = {}) => backend.optimStep(id, { optimizer, clipNorm: 1, ...settings });
    const weights = (id: string) => backend.forward(id, demonstrations(9)); // equal where the weights are
    const directory = async () => {
      const path = join(root, `saved-${count++}`);
      await mkdir(path, { recursive: true });
      return path;
    };

    it('gives equal first weights for equal seeds', async () => {
      const [one, same, other] = [await policy(1), await policy(1), await policy(2)];
      expect(await weights(same)).toEqual(await weights(one));
      expect(await weights(other)).not.toEqual(await weights(one));
    });

    it('scores exactly as it sampled, and 0 where nothing was written', async () => {
      const id = await playing();
      const temperatures = [1, 0.7, 1.6, 0];
      const requests = temperatures.map((temperature, n) => request(id, n, { temperature, topP: 0.9, topK: 40 }));
      const generations = await Promise.all(requests.map((each) => backend.generate(each)));
      const samples = requests.map((each, i) => sampleOf(each, generations[i] as Generation));
      const rows = await backend.forward(id, samples);
      expect(rows).toEqual(samples.map(({ behaviourLogprobs }) => behaviourLogprobs));
    });

    it('samples the same whatever else it samples, differently for another key', async () => {
      const id = await playing();
      const alone = await backend.generate(request(id, 1));
      const [beside] = await Promise.all([1, 2, 3, 4, 5].map((n) => backend.generate(request(id, n))));
      expect(beside).toEqual(alone);
      expect(await backend.generate(request(id, 1, { key: randomKey('another') }))).not.toEqual(alone);
    });

    it('ends a response at a stop token, at the most tokens and at the end of the context', async () => {
      const id = await playing();
      const long = await backend.generate(request(id, 1, { stopTokens: [] }));
      expect(long).toMatchObject({ finishReason: 'length', policyVersion: 0 });
      expect(long.tokens).toHaveLength(10);
      const third = long.tokens[2] as number;
      const stopped = await backend.generate(request(id, 1, { stopTokens: [third] }));
      expect(stopped.finishReason).toBe('stop');
      expect(stopped.tokens).toEqual(long.tokens.slice(0, long.tokens.indexOf(third) + 1));
      const full = await backend.generate(request(id, 1, { stopTokens: [], maxTokens: 1000 }));
      expect(full.finishReason).toBe('length');
      expect(full.tokens.length + request(id, 1).prompt.length).toBe(config.context);
    });

    it('plays with the published weights, each publication under the next version', async () => {
      const id = await playing();
      const before = await backend.generate(request(id, 1));
      await learn(id, demonstrations(1));
      await step(id);
      expect(await backend.generate(request(id, 1))).toEqual(before);
      expect(await backend.publish(id)).toEqual({ version: 1 });
      expect(await backend.sync(id)).toEqual({ version: 1 });
      const after = await backend.generate(request(id, 1));
      expect(after.policyVersion).toBe(1);
      expect(after.logprobs).not.toEqual(before.logprobs);
    });

    it('learns demonstrations', async () => {
      const id = await policy();
      const losses: number[] = [];
      for (let i = 0; i < 12; i++) {
        losses.push((await learn(id, demonstrations(1))).loss);
        expect(await step(id)).toMatchObject({ applied: true });
      }
      expect(losses[0]).toBeCloseTo(Math.log(config.vocabSize), 0);
      expect(losses.at(-1)).toBeLessThan((losses[0] as number) - 1);
      const rows = await backend.forward(id, demonstrations(1));
      const { loss } = await learn(id, demonstrations(1));
      const mean = rows.flatMap((row) => [...row]).reduce((sum, x) => sum - x, 0) / written(demonstrations(1));
      expect(loss).toBeCloseTo(mean, 5);
    });

    it('adds up a mini-batch that comes in parts', async () => {
      const [whole, parts] = [await policy(), await policy()];
      const samples = demonstrations(2);
      const options = { loss: ppo, normalizer: written(samples) };
      const { loss } = await backend.forwardBackward(whole, samples, options);
      const pieces = await Promise.all(
        [samples.slice(0, 2), samples.slice(2)].map((part) => backend.forwardBackward(parts, part, options)),
      );
      expect(pieces.reduce((sum, piece) => sum + piece.loss, 0)).toBeCloseTo(loss, 6);
      const [one, two] = [await step(whole), await step(parts)];
      expect(two.gradientNorm).toBeCloseTo(one.gradientNorm, 6);
      const [a, b] = [await weights(whole), await weights(parts)];
      for (const [r, row] of a.entries()) for (const [t, x] of row.entries()) expect(b[r]?.[t]).toBeCloseTo(x, 3);
    });

    it('reports the norm that each call alone added', async () => {
      const id = await policy();
      const first = await learn(id, demonstrations(1));
      const second = await learn(id, demonstrations(2));
      await step(id);
      const fresh = await policy();
      expect((await learn(fresh, demonstrations(2))).gradientNorm).toBeCloseTo(second.gradientNorm, 6);
      expect(second.gradientNorm).not.toBeCloseTo(first.gradientNorm, 6);
    });

    it('has ratios of exactly 1 on what the policy just wrote, and others after an update', async () => {
      const id = await playing();
      const requests = [0, 1, 2, 3, 4, 5].map((n) => request(id, n));
      const samples = await Promise.all(requests.map(async (each) => sampleOf(each, await backend.generate(each))));
      const options = { loss: ppo, normalizer: written(samples) };
      const first = await backend.forwardBackward(id, samples, options);
      expect(first.metrics).toMatchObject({ maxRatioDeviation: 0, approxKl: 0, clipFraction: 0 });
      expect(first.metrics.entropy).toBeGreaterThan(0);
      await step(id);
      const second = await backend.forwardBackward(id, samples, options);
      expect(second.metrics.maxRatioDeviation).toBeGreaterThan(0);
      expect(second.loss).toBeLessThan(first.loss);
    });

    it('takes every loss it says it has: all begin with the same gradient where they weigh tokens alike', async () => {
      const samples = await played();
      const norms = new Map<string, number>();
      for (const type of backend.capabilities.losses) {
        const id = await policy();
        const loss = { type, clip: 0.2, clipLow: 0.2, clipHigh: 0.2, aggregate: 'token-mean' } as LossSpec;
        const options = { loss, normalizer: normalizerOf(samples, loss, 8) };
        const { metrics, ...result } = await backend.forwardBackward(id, samples, options);
        expect(metrics).toMatchObject({ maxRatioDeviation: 0, approxKl: 0, clipFraction: 0 });
        expect(Number.isFinite(result.loss)).toBe(true);
        norms.set(type, (await step(id)).gradientNorm);
      }
      const ppoNorm = norms.get('ppo-clip') as number;
      for (const type of ['s-ppo', 'cispo', 'cross-entropy'])
        expect(norms.get(type) ?? ppoNorm).toBeCloseTo(ppoNorm, 5);
      for (const [type, norm] of norms) expect(norm, type).toBeGreaterThan(0);
    });

    it('holds a policy near its reference: no gradient at it, one towards it beside it', async () => {
      const id = await policy();
      const silent = demonstrations(1).map((sample) => ({ ...sample, advantages: sample.advantages.map(() => 0) }));
      const at = await backend.forward(id, silent);
      const options = { loss: ppo, normalizer: written(silent), kl: { kind: 'k2', coefficient: 0.5 } } as const;
      const near = silent.map((sample, i) => ({ ...sample, referenceLogprobs: at[i] as Float32Array }));
      const still = await backend.forwardBackward(id, near, options);
      expect(still).toMatchObject({ loss: 0, metrics: { referenceKl: 0 } });
      expect((await step(id)).gradientNorm).toBe(0);
      const beside = near.map((sample) => ({
        ...sample,
        referenceLogprobs: sample.referenceLogprobs.map((x) => x + 0.5),
      }));
      const pulled = await backend.forwardBackward(id, beside, options);
      expect(pulled.metrics.referenceKl).toBeCloseTo(0.5 ** 2 / 2, 5);
      expect(pulled.loss).toBeCloseTo((0.5 * 0.5 ** 2) / 2, 5);
      await step(id, { optimizer: { ...optimizer, learningRate: 1e-3 } });
      expect((await backend.forwardBackward(id, beside, options)).loss).toBeLessThan(pulled.loss);
    });

    it('rewards entropy where it can', async () => {
      const id = await policy();
      for (let i = 0; i < 8; i++) {
        await learn(id, demonstrations(1));
        await step(id);
      }
      const silent = demonstrations(1).map((sample) => ({ ...sample, advantages: sample.advantages.map(() => 0) }));
      if (!backend.capabilities.entropyBonus) return;
      await backend.resetOptimizer(id); // whose momentum leads the other way
      const options = { loss: ppo, normalizer: written(silent), entropyCoefficient: 0.5 };
      const before = await backend.forwardBackward(id, silent, options);
      expect(before.loss).toBeCloseTo(-0.5 * before.metrics.entropy, 5);
      await step(id, { optimizer: { ...optimizer, learningRate: 3e-3 } });
      const after = await backend.forwardBackward(id, silent, options);
      expect(after.metrics.entropy).toBeGreaterThan(before.metrics.entropy);
    });

    it('corrects importance by the log-probs of the policy that the update begins with', async () => {
      const [corrected, scaled] = [await policy(), await policy()];
      const samples = demonstrations(1);
      const proximal = await backend.forward(corrected, samples);
      const stale = samples.map((sample, i) => ({
        ...sample,
        behaviourLogprobs: (proximal[i] as Float32Array).map((x) => x + Math.LN2),
        proximalLogprobs: proximal[i] as Float32Array,
      }));
      const importanceCorrection = { cap: 2, beyond: 'truncate', level: 'token' } as const;
      const normalizer = written(samples);
      const options = { loss: { ...ppo, importanceCorrection }, normalizer };
      const first = await backend.forwardBackward(corrected, stale, options);
      expect(first.metrics).toMatchObject({ maxRatioDeviation: 0, importanceBeyond: 0 });
      expect(first.metrics.importanceWeight).toBeCloseTo(0.5, 5);
      const fresh = stale.map((sample) => ({
        ...sample,
        behaviourLogprobs: sample.proximalLogprobs,
        advantages: sample.advantages.map((x) => x / 2),
      }));
      const second = await backend.forwardBackward(scaled, fresh, { loss: ppo, normalizer });
      expect(first.loss).toBeCloseTo(second.loss, 5);
      expect((await step(corrected)).gradientNorm).toBeCloseTo((await step(scaled)).gradientNorm, 5);
    });

    it('clears the gradient with every step, applied or not', async () => {
      const id = await policy();
      await learn(id, demonstrations(1));
      const before = await weights(id);
      const skipped = await step(id, { skipAboveNorm: 1e-9 });
      expect(skipped.applied).toBe(false);
      expect(skipped.gradientNorm).toBeGreaterThan(0);
      expect(await weights(id)).toEqual(before);
      expect((await step(id)).gradientNorm).toBe(0);
    });

    it('scales a gradient down to the norm it may have, and never up', async () => {
      // A large epsilon, for otherwise AdamW's first step does not depend on the scale.
      const soft = { optimizer: { ...optimizer, learningRate: 1, epsilon: 1 } };
      const stepped = async (clipNorm: number, scale = 1) => {
        const id = await policy();
        const samples = demonstrations(1);
        await backend.forwardBackward(id, samples, { loss: crossEntropy, normalizer: written(samples) / scale });
        const { gradientNorm } = await step(id, { ...soft, clipNorm });
        return { gradientNorm, rows: await weights(id) };
      };
      const free = await stepped(0);
      expect(await stepped(1000)).toEqual(free);
      const clipped = await stepped(free.gradientNorm / 4);
      expect(clipped.gradientNorm).toBe(free.gradientNorm);
      const quarter = await stepped(0, 1 / 4);
      for (const [r, row] of quarter.rows.entries())
        for (const [t, x] of row.entries()) expect(clipped.rows[r]?.[t]).toBeCloseTo(x, 4);
      expect(Math.abs((clipped.rows[0]?.at(-1) ?? 0) - (free.rows[0]?.at(-1) ?? 0))).toBeGreaterThan(1e-3);
    });

    it('never lets a gradient that is not a finite number reach the weights', async () => {
      const [first, before] = [await policy(), await weights(await policy())];
      const norms: number[] = [];
      // The norm overflows to infinity for some, to what is not a number for others.
      for (const scale of [2e37, 4e37, 6e37, 8e37, 1e38, 2e38, Number.POSITIVE_INFINITY]) {
        const id = await policy();
        await backend.copyWeights(first, id);
        const samples = demonstrations(1).map((sample) => ({
          ...sample,
          advantages: sample.advantages.map((advantage) => (advantage === 0 ? 0 : advantage * scale)),
        }));
        await backend.forwardBackward(id, samples, { loss: ppo, normalizer: 1 });
        const { gradientNorm, applied } = await step(id);
        expect(applied).toBe(Number.isFinite(gradientNorm));
        if (!applied) expect(await weights(id)).toEqual(before);
        norms.push(gradientNorm);
        await learn(id, demonstrations(1));
        expect(await step(id)).toMatchObject({ applied: true });
      }
      expect(norms.some(Number.isNaN)).toBe(true);
      expect(norms).toContain(Number.POSITIVE_INFINITY);
    });

    it('copies weights between policies of one shape and refuses others', async () => {
      const [from, to] = [await policy(1), await policy(2)];
      await backend.copyWeights(from, to);
      expect(await weights(to)).toEqual(await weights(from));
      const deeper = await policy(1, { layers: 3 });
      await expect(backend.copyWeights(from, deeper)).rejects.toThrow(BackendError);
      await expect(backend.copyWeights(deeper, from)).rejects.toThrow(BackendError);
    });

    it('goes on from what it saved as if nothing had happened', async () => {
      const id = await playing();
      for (const seed of [1, 2]) {
        await learn(id, demonstrations(seed));
        await step(id);
        await backend.publish(id);
      }
      const path = await directory();
      await backend.save(id, path, { optimizer: true });
      const again = await policy(5);
      await backend.load(again, path, { optimizer: true });
      expect(await weights(again)).toEqual(await weights(id));
      for (const each of [id, again]) {
        await learn(each, demonstrations(3));
        await step(each);
      }
      expect(await weights(again)).toEqual(await weights(id));
      // The loaded weights were those of version 2, and are published once more before anybody plays.
      expect(await backend.publish(again)).toEqual({ version: 2 });

      const fresh = await policy(5);
      await backend.load(fresh, path, { optimizer: false });
      await learn(fresh, demonstrations(3));
      await step(fresh);
      expect(await weights(fresh)).not.toEqual(await weights(id));
    });

    it('goes on with the momentum of SGD that it saved', async () => {
      const sgd = { type: 'sgd', learningRate: 0.5, momentum: 0.9, nesterov: true, weightDecay: 0.01 } as const;
      const id = await policy();
      for (const seed of [1, 2]) {
        await learn(id, demonstrations(seed));
        await step(id, { optimizer: sgd });
      }
      const path = await directory();
      await backend.save(id, path, { optimizer: true });
      const [again, fresh] = [await policy(5), await policy(5)];
      await backend.load(again, path, { optimizer: true });
      await backend.load(fresh, path, { optimizer: false });
      for (const each of [id, again, fresh]) {
        await learn(each, demonstrations(3));
        await step(each, { optimizer: sgd });
      }
      expect(await weights(again)).toEqual(await weights(id));
      expect(await weights(fresh)).not.toEqual(await weights(id));
    });

    it('teaches a critic returns, apart from its policy, and goes on from what it saved', async ({ skip }) => {
      const { critics } = backend;
      if (critics === undefined) return skip('it has no critics');
      const id = await policy();
      const before = await weights(id);
      const samples = demonstrations(4);
      const teach = async (critic: string) => {
        const old = await critics.values(critic, samples);
        const lessons = samples.map(({ tokens, mask }, i) => ({
          tokens,
          mask,
          oldValues: old[i] as Float32Array,
          returns: Float32Array.from(tokens, (token) => token / 256),
        }));
        const settings = { clip: 10, normalizer: written(samples) };
        const { loss } = await critics.forwardBackward(critic, lessons, settings);
        expect(await critics.optimStep(critic, { optimizer, clipNorm: 1 })).toMatchObject({ applied: true });
        return loss;
      };
      const [first, again] = [`critic${count++}`, `critic${count++}`];
      await critics.create(first, id);
      expect((await critics.values(first, samples)).every((row) => row.every((value) => value === 0))).toBe(true);
      const losses: number[] = [];
      for (let i = 0; i < 10; i++) losses.push(await teach(first));
      expect(losses.at(-1)).toBeLessThan((losses[0] as number) / 2);
      expect(await weights(id)).toEqual(before);

      const path = await directory();
      await critics.save(first, path);
      await critics.create(again, id);
      await critics.load(again, path);
      expect(await critics.values(again, samples)).toEqual(await critics.values(first, samples));
      for (const critic of [first, again]) await teach(critic);
      expect(await critics.values(again, samples)).toEqual(await critics.values(first, samples));
      await expect(critics.create(again, id)).rejects.toThrow(/exists already/);
      await expect(critics.load(again, await directory())).rejects.toThrow(CheckpointError);
      await expect(critics.values('nobody', samples)).rejects.toThrow(/no critic 'nobody'/);
    });

    it('begins with a fresh optimiser after a reset', async () => {
      const [used, fresh] = [await policy(), await policy()];
      await learn(used, demonstrations(1));
      await step(used);
      await backend.copyWeights(used, fresh);
      await backend.resetOptimizer(used);
      for (const id of [used, fresh]) {
        await learn(id, demonstrations(2));
        await step(id);
      }
      expect(await weights(used)).toEqual(await weights(fresh));
    });

    it('says what is wrong with a directory', async () => {
      const id = await policy();
      const path = await directory();
      await expect(backend.load(id, path, { optimizer: false })).rejects.toThrow(CheckpointError);
      await backend.save(id, path, { optimizer: false });
      await expect(backend.load(id, path, { optimizer: true })).rejects.toThrow(CheckpointError);
      const other = await policy(1, { feedForward: 16 });
      await expect(backend.load(other, path, { optimizer: false })).rejects.toThrow(/feedForward 16.*12/);
    });

    it('refuses what cannot be: a second policy of a name, an unknown one, a prompt without room', async () => {
      const id = await playing();
      const spec = { type: 'random', config, tokenizer, seed: 1 } as const;
      await expect(backend.createPolicy(id, spec)).rejects.toThrow(/exists already/);
      await expect(backend.forward('nobody', [])).rejects.toThrow(/no policy 'nobody'/);
      await expect(backend.generate(request('nobody', 1))).rejects.toThrow(BackendError);
      await expect(backend.generate(request(await policy(), 1))).rejects.toThrow(/published/);
      await expect(backend.sync(await policy())).rejects.toThrow(/published/);
      const long = new Array<number>(config.context).fill(1);
      await expect(backend.generate(request(id, 1, { prompt: long }))).rejects.toThrow(/leaves no room/);
      await expect(backend.generate(request(id, 1, { prompt: [] }))).rejects.toThrow(BackendError);
    });

    it('drops what is aborted, with the reason, and nothing else', async () => {
      const id = await playing();
      const expected = await backend.generate(request(id, 2));
      const controller = new AbortController();
      await backend.pause();
      const dropped = backend.generate(request(id, 1), controller.signal);
      const kept = backend.generate(request(id, 2));
      const reason = new Error('no longer wanted');
      controller.abort(reason);
      await expect(dropped).rejects.toBe(reason);
      await backend.resume();
      expect(await kept).toEqual(expected);
      const late = async () => backend.generate(request(id, 1), controller.signal);
      await expect(late()).rejects.toBe(reason);
    });

    it('holds requests back while it is paused', async () => {
      const id = await playing();
      await backend.pause();
      let done = false;
      const waiting = backend.generate(request(id, 1)).then(() => {
        done = true;
      });
      await weights(id); // an answer that comes after the request was taken in
      expect(done).toBe(false);
      await backend.resume();
      await waiting;
      expect(await backend.health()).toEqual({ ok: true, running: 0, waiting: 0 });
    });
  });

  it(`${name} rejects what is under way when it is disposed of, and all that comes later`, async () => {
    const backend = await open();
    await backend.createPolicy('one', { type: 'random', config, tokenizer, seed: 1 });
    const pending = backend.forward('one', []);
    const expectation = expect(pending).rejects.toThrow(BackendError);
    await backend.dispose();
    await backend.dispose();
    await expectation;
    await expect(backend.publish('one')).rejects.toThrow(BackendError);
  });
}
