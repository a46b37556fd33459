/** The contract of training on every backend. */

import { type LossSpec, normalizerOf } from '@drmas/engine/loss';
import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../../support/adamw.js';
import {
  chainOfTurns,
  demonstrations,
  learn,
  logprobsOf,
  optimizer,
  played,
  ppo,
  type Subject,
  silent,
  step,
  written,
} from './subject.js';

export function trainingContract(subject: Subject): void {
  describe('training', () => {
    it('begins and goes on alike for equal seeds, otherwise for others', async () => {
      const rows: Float32Array[][] = [];
      for (const seed of [1, 1, 2]) {
        const policy = await subject.policy(seed);
        await learn(policy, demonstrations(1));
        await step(policy);
        rows.push(await logprobsOf(policy));
      }
      expect(rows[1]).toEqual(rows[0]);
      if (subject.test.sameForEverySeed !== true) expect(rows[2]).not.toEqual(rows[0]);
    });

    it('learns demonstrations', async () => {
      const policy = await subject.policy();
      const losses: number[] = [];
      for (let i = 0; i < 12; i++) {
        losses.push((await learn(policy, demonstrations(1))).loss);
        expect(await step(policy)).toMatchObject({ applied: true });
      }
      expect(losses[0]).toBeCloseTo(Math.log(policy.tokenizer.vocabSize), 0);
      expect(losses.at(-1)).toBeLessThan((losses[0] as number) - subject.test.learns);
      const rows = await policy.logprobs(demonstrations(1));
      const { loss } = await learn(policy, demonstrations(1));
      const mean = rows.flatMap((row) => [...row]).reduce((sum, x) => sum - x, 0) / written(demonstrations(1));
      expect(loss).toBeCloseTo(mean, 4);
    });

    it('adds up a mini-batch that comes in parts', async () => {
      const [whole, parts] = [await subject.policy(), await subject.policy()];
      const samples = demonstrations(2);
      const options = { loss: ppo, normalizer: written(samples) };
      const { loss } = await whole.forwardBackward(samples, options);
      const pieces = await Promise.all(
        [samples.slice(0, 2), samples.slice(2)].map((part) => parts.forwardBackward(part, options)),
      );
      expect(pieces.reduce((sum, piece) => sum + piece.loss, 0)).toBeCloseTo(loss, 5);
      const [one, two] = [await step(whole), await step(parts)];
      if (one.norm !== undefined) expect(two.norm).toBeCloseTo(one.norm, 5);
      subject.expectEqualRows(await logprobsOf(parts), await logprobsOf(whole), 3);
    });

    it('learns the same from a chain of turns as from its single turns', async () => {
      const [whole, parts] = [await subject.policy(), await subject.policy()];
      const { chain, turns } = chainOfTurns();
      const loss = { ...ppo, aggregate: 'seq-mean-token-mean' } as const;
      const results = [
        await whole.forwardBackward([chain], { loss, normalizer: normalizerOf([chain], loss, 10) }),
        await parts.forwardBackward(turns, { loss, normalizer: normalizerOf(turns, loss, 10) }),
      ] as const;
      const [one, many] = results;
      expect(one.loss).toBeCloseTo(many.loss, 6);
      expect(one.metrics.approxKl).toBeCloseTo(many.metrics.approxKl ?? Number.NaN, 5);
      expect(one.tokens).toBe(chain.tokens.length);
      if (many.gradientNorm !== undefined) expect(one.gradientNorm).toBeCloseTo(many.gradientNorm, 5);
      const rows = await whole.logprobs([chain]);
      const ofTurns = await parts.logprobs(turns);
      const summed = Float32Array.from(chain.tokens, (_, t) => ofTurns.reduce((sum, row) => sum + (row[t] ?? 0), 0));
      subject.expectEqualRows(rows, [summed]);
      const [first, second] = [await step(whole), await step(parts)];
      if (first.norm !== undefined) expect(second.norm).toBeCloseTo(first.norm, 5);
      subject.expectEqualRows(await logprobsOf(whole), await logprobsOf(parts), 3);
    });

    it('tells the norm that each call alone added, where norms are known before the update', async ({ skip }) => {
      if (subject.can.gradientNorms === 'after') return skip('norms are known after the update');
      const [policy, fresh] = [await subject.policy(), await subject.policy()];
      const first = await learn(policy, demonstrations(1));
      const second = await learn(policy, demonstrations(2));
      expect((await learn(fresh, demonstrations(2))).gradientNorm).toBeCloseTo(second.gradientNorm as number, 6);
      expect(second.gradientNorm).not.toBeCloseTo(first.gradientNorm as number, 6);
    });

    it('has ratios of 1 on fresh samples, and other ratios after an update', async () => {
      const policy = await subject.playing();
      const samples = await played(policy);
      const options = { loss: ppo, normalizer: written(samples) };
      const first = await policy.forwardBackward(samples, options);
      subject.expectEqual(first.metrics.maxRatioDeviation, 0);
      subject.expectEqual(first.metrics.approxKl, 0);
      expect(first.metrics.clipFraction).toBe(0);
      expect(first.metrics.entropy).toBeGreaterThan(0);
      await step(policy, { optimizer: plainAdamW(1e-3) }); // small enough to stay within the clip
      const second = await policy.forwardBackward(samples, options);
      expect(second.metrics.maxRatioDeviation).toBeGreaterThan(first.metrics.maxRatioDeviation ?? Number.NaN);
      expect(second.loss).toBeLessThan(first.loss);
    });

    it('takes every loss it says it has: all begin with the same gradient where they weigh tokens alike', async () => {
      const policy = await subject.playing();
      const samples = await played(policy);
      const norms = new Map<string, number>();
      for (const type of subject.can.losses) {
        const bounds = { clip: 0.2, clipLow: 0.2, clipHigh: 0.2, beta: 0.5, desirable: 1, undesirable: 1 };
        const loss = { type, ...bounds, aggregate: 'token-mean' } as LossSpec;
        const { metrics, loss: value } = await policy.forwardBackward(samples, {
          loss,
          normalizer: normalizerOf(samples, loss, 10),
        });
        subject.expectEqual(metrics.maxRatioDeviation, 0);
        expect(metrics.clipFraction).toBe(0);
        expect(Number.isFinite(value)).toBe(true);
        const { applied, norm } = await step(policy, { optimizer: { ...optimizer, learningRate: 0 } });
        expect(applied, type).toBe(true);
        if (norm !== undefined) norms.set(type, norm);
      }
      const ppoNorm = norms.get('ppo-clip') ?? 0;
      for (const type of ['s-ppo', 'cispo', 'cross-entropy'])
        expect(norms.get(type) ?? ppoNorm).toBeCloseTo(ppoNorm, 4);
      for (const [type, norm] of norms) expect(norm, type).toBeGreaterThan(0);
    });

    it('holds a policy near its reference: no gradient at it, one towards it beside it', async () => {
      const policy = await subject.policy();
      const samples = silent(demonstrations(1));
      const at = await policy.logprobs(samples);
      const options = { loss: ppo, normalizer: written(samples), kl: { kind: 'k2', coefficient: 0.5 } } as const;
      const near = samples.map((sample, i) => ({ ...sample, referenceLogprobs: at[i] as Float32Array }));
      const still = await policy.forwardBackward(near, options);
      expect(still).toMatchObject({ loss: 0, metrics: { referenceKl: 0 } });
      expect(await step(policy)).toEqual({ applied: true, norm: 0 });
      const beside = near.map((sample) => ({
        ...sample,
        referenceLogprobs: sample.referenceLogprobs.map((x) => x + 0.5),
      }));
      const pulled = await policy.forwardBackward(beside, options);
      expect(pulled.metrics.referenceKl).toBeCloseTo(0.5 ** 2 / 2, 5);
      expect(pulled.loss).toBeCloseTo((0.5 * 0.5 ** 2) / 2, 5);
      await step(policy, { optimizer: { ...optimizer, learningRate: 1e-3 } });
      expect((await policy.forwardBackward(beside, options)).loss).toBeLessThan(pulled.loss);
    });

    it('rewards entropy, where it sees the whole distribution', async ({ skip }) => {
      if (subject.can.distribution === 'sampled') return skip('it sees log-probs of sampled tokens');
      const policy = await subject.policy();
      for (let i = 0; i < 8; i++) {
        await learn(policy, demonstrations(1));
        await step(policy);
      }
      await policy.resetOptimizer(); // whose momentum leads the other way
      const samples = silent(demonstrations(1));
      const options = { loss: ppo, normalizer: written(samples), entropyCoefficient: 0.5 };
      const before = await policy.forwardBackward(samples, options);
      expect(before.loss).toBeCloseTo(-0.5 * (before.metrics.entropy ?? Number.NaN), 5);
      await step(policy, { optimizer: { ...optimizer, learningRate: 3e-3 } });
      const after = await policy.forwardBackward(samples, options);
      expect(after.metrics.entropy).toBeGreaterThan(before.metrics.entropy ?? Number.NaN);
    });

    it('corrects importance by the log-probs of the policy that the update begins with', async () => {
      const [corrected, scaled] = [await subject.policy(), await subject.policy()];
      const samples = demonstrations(1);
      const proximal = await corrected.logprobs(samples);
      const stale = samples.map((sample, i) => ({
        ...sample,
        behaviourLogprobs: (proximal[i] as Float32Array).map((x) => x + Math.LN2),
        proximalLogprobs: proximal[i] as Float32Array,
      }));
      const importanceCorrection = { cap: 2, beyond: 'truncate', level: 'token' } as const;
      const normalizer = written(samples);
      const first = await corrected.forwardBackward(stale, { loss: { ...ppo, importanceCorrection }, normalizer });
      expect(first.metrics).toMatchObject({ maxRatioDeviation: 0, importanceBeyond: 0 });
      expect(first.metrics.importanceWeight).toBeCloseTo(0.5, 5);
      const fresh = stale.map((sample) => ({
        ...sample,
        behaviourLogprobs: sample.proximalLogprobs,
        advantages: sample.advantages.map((x) => x / 2),
      }));
      const second = await scaled.forwardBackward(fresh, { loss: ppo, normalizer });
      expect(first.loss).toBeCloseTo(second.loss, 5);
      const [one, two] = [await step(corrected), await step(scaled)];
      if (two.norm !== undefined) expect(one.norm).toBeCloseTo(two.norm, 5);
    });

    it('discards a gradient without a trace', async () => {
      const [policy, fresh] = [await subject.policy(), await subject.policy()];
      const before = await logprobsOf(policy);
      const samples = demonstrations(1).map((sample, i) => ({
        ...sample,
        advantages: sample.advantages.map(() => i + 1),
      }));
      await policy.forwardBackward(samples, { loss: ppo, normalizer: 1 });
      await policy.discardGradient();
      subject.expectEqualRows(await logprobsOf(policy), before);
      expect(await step(policy)).toEqual({ applied: true, norm: 0 });
      for (const each of [policy, fresh]) {
        await each.resetOptimizer();
        await learn(each, demonstrations(2));
        await step(each);
      }
      subject.expectEqualRows(await logprobsOf(policy), await logprobsOf(fresh));
    });

    it('leaves out an update above the limit, and clears the gradient all the same', async ({ skip }) => {
      if (subject.can.gradientNorms === 'after') return skip('norms are known after the update');
      const policy = await subject.policy();
      await learn(policy, demonstrations(1));
      const before = await logprobsOf(policy);
      const skipped = await step(policy, { skipAboveNorm: 1e-9 });
      expect(skipped).toEqual({ applied: false, why: 'above-limit', norm: expect.any(Number) });
      expect(skipped.norm).toBeGreaterThan(0);
      expect(await logprobsOf(policy)).toEqual(before);
      expect(await step(policy)).toEqual({ applied: true, norm: 0 });
    });

    it('scales a gradient down to the norm it may have, and never up', async ({ skip }) => {
      const { clipsGradients, gradientNorms } = subject.can;
      if (!clipsGradients || gradientNorms === 'after') return skip('it does not clip, or tells no norm to clip to');
      // A large epsilon, for otherwise AdamW's first step does not depend on the scale.
      const soft = { optimizer: { ...optimizer, learningRate: 1, epsilon: 1 } };
      const stepped = async (clipNorm: number, scale = 1) => {
        const policy = await subject.policy();
        const samples = demonstrations(1);
        const loss = { type: 'demonstrations' } as const;
        await policy.forwardBackward(samples, { loss, normalizer: written(samples) / scale });
        const { norm } = await step(policy, { ...soft, clipNorm });
        return { norm, rows: await policy.logprobs(samples) };
      };
      const free = await stepped(0);
      expect(await stepped(1000)).toEqual(free);
      const clipped = await stepped((free.norm as number) / 4);
      expect(clipped.norm).toBe(free.norm);
      subject.expectEqualRows(clipped.rows, (await stepped(0, 1 / 4)).rows, 4);
      expect(Math.abs((clipped.rows[0]?.at(-1) ?? 0) - (free.rows[0]?.at(-1) ?? 0))).toBeGreaterThan(1e-3);
    });

    it('never lets a gradient that is not a finite number reach the weights', async () => {
      const policy = await subject.policy();
      const norms: (number | undefined)[] = [];
      // The norm overflows to infinity on some backends, and to NaN on others.
      for (const scale of [2e37, 4e37, 6e37, 8e37, 1e38, 2e38, Number.POSITIVE_INFINITY]) {
        await policy.resetOptimizer();
        const before = await logprobsOf(policy);
        const samples = demonstrations(1).map((sample) => ({
          ...sample,
          advantages: sample.advantages.map((advantage) => (advantage === 0 ? 0 : advantage * scale)),
        }));
        norms.push((await policy.forwardBackward(samples, { loss: ppo, normalizer: 1 })).gradientNorm);
        const result = await step(policy);
        if (!result.applied) {
          expect(['not-finite', 'failed']).toContain(result.why);
          subject.expectEqualRows(await logprobsOf(policy), before);
        } else expect(Number.isFinite(result.norm ?? 0)).toBe(true);
        await learn(policy, demonstrations(1));
        expect(await step(policy)).toMatchObject({ applied: true });
      }
      if (subject.can.gradientNorms === 'after') return;
      // The place of an overflow depends on an adapter's base, and on the samples that share weights: in a table few
      // do.
      if (subject.test.weights().type === 'adapter') {
        expect(norms.every(Number.isFinite)).toBe(false);
        return;
      }
      if (subject.test.sameForEverySeed !== true) expect(norms.some(Number.isNaN)).toBe(true);
      expect(norms).toContain(Number.POSITIVE_INFINITY);
    });
  });
}
