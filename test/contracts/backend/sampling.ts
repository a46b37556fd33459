/** The contract of sampling on every backend. */

import type { Generation } from '@drmas/engine/contract';
import { BackendError } from '@drmas/engine/errors';
import { randomKey } from '@drmas/engine/math';
import { describe, expect, it } from 'vitest';
import { demonstrations, learn, request, type Subject, sampleOf, step } from './subject.js';

/** A longer context is not filled. */
const LONGEST_CONTEXT = 256;

export function samplingContract(subject: Subject): void {
  describe('sampling', () => {
    it('gives the log-probs that training computes, and 0 for tokens that the policy did not write', async () => {
      const policy = await subject.playing();
      const temperatures = subject.can.distribution === 'whole' ? [1, 0.7, 1.6, 0] : [1, 0];
      const requests = temperatures.map((temperature, n) => request(policy, n, { temperature, topP: 0.9, topK: 40 }));
      const generations = await Promise.all(requests.map((each) => policy.generate(each)));
      const samples = requests.map((each, i) => sampleOf(each, generations[i] as Generation));
      subject.expectEqualRows(
        await policy.logprobs(samples),
        samples.map(({ behaviourLogprobs }) => behaviourLogprobs),
      );
    });

    it('gives the same whatever else is sampled, and something else for another key', async () => {
      const policy = await subject.playing();
      const alone = await policy.generate(request(policy, 1));
      const [beside] = await Promise.all([1, 2, 3, 4, 5].map((n) => policy.generate(request(policy, n))));
      expect(beside?.tokens).toEqual(alone.tokens);
      subject.expectEqualRows([beside?.logprobs ?? []], [alone.logprobs]);
      const other = await policy.generate(request(policy, 1, { key: randomKey('another') }));
      expect(other.tokens).not.toEqual(alone.tokens);
    });

    it('ends a response at a stop token, at the most tokens and at the end of the context', async () => {
      const policy = await subject.playing();
      const long = await policy.generate(request(policy, 1, { stopTokens: [] }));
      expect(long).toMatchObject({ finishReason: 'length', policyVersion: 0 });
      expect(long.tokens).toHaveLength(10);
      const third = long.tokens[2] as number;
      const stopped = await policy.generate(request(policy, 1, { stopTokens: [third] }));
      expect(stopped.finishReason).toBe('stop');
      expect(stopped.tokens).toEqual(long.tokens.slice(0, long.tokens.indexOf(third) + 1));
      if (policy.context > LONGEST_CONTEXT) return;
      const full = await policy.generate(request(policy, 1, { stopTokens: [], maxTokens: 1000 }));
      expect(full.finishReason).toBe('length');
      expect(full.tokens.length + request(policy, 1).prompt.length).toBe(policy.context);
    });

    it('gives the tokens as they come, and ends what cannot take them', async () => {
      const policy = await subject.playing();
      const expected = await Promise.all([1, 2, 3].map((n) => policy.generate(request(policy, n))));
      const streams: number[][] = [[], [], []];
      const streamed = await Promise.all(
        streams.map((stream, i) =>
          policy.generate(request(policy, i + 1), undefined, (tokens) => void stream.push(...tokens)),
        ),
      );
      expect(streamed.map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
      expect(streams).toEqual(expected.map(({ tokens }) => tokens));
      const full = new Error('no more room');
      const refused = policy.generate(request(policy, 1), undefined, () => {
        throw full;
      });
      await expect(refused).rejects.toBe(full);
    });

    it('samples with the published weights, and each publication has the next version', async () => {
      const policy = await subject.policy();
      await expect(policy.generate(request(policy, 1))).rejects.toThrow(/has not been published/);
      expect(await policy.publish()).toBe(0);
      const before = await policy.generate(request(policy, 1));
      await learn(policy, demonstrations(1));
      await step(policy);
      const meanwhile = await policy.generate(request(policy, 1)).catch((error: unknown) => error);
      // Where sampling an older snapshot would take training back to it, it is refused.
      if (meanwhile instanceof Error) expect(meanwhile).toBeInstanceOf(BackendError);
      else expect(meanwhile).toEqual(before);
      expect(await policy.publish()).toBe(1);
      const after = await policy.generate(request(policy, 1));
      expect(after.policyVersion).toBe(1);
      expect(after.logprobs).not.toEqual(before.logprobs);
    });

    it('plays versions that were kept while it trains on, and refuses the others', async () => {
      if (!subject.can.keepsVersions) return;
      const policy = await subject.policy();
      expect(policy.version).toBeUndefined();
      await policy.publish();
      const first = await policy.generate(request(policy, 1));
      const train = async () => {
        await learn(policy, demonstrations(1));
        await step(policy);
        await policy.publish(2);
      };
      await train();
      const second = await policy.generate(request(policy, 1));
      // Both versions sample at the same time as an update: each gives the same result as alone.
      const kept = [0, 1].map((version) => policy.generate(request(policy, 1, { version })));
      const learning = learn(policy, demonstrations(2));
      expect(await Promise.all(kept)).toEqual([first, second]);
      await learning;
      await train();
      expect(policy.version).toBe(2);
      expect(await policy.generate(request(policy, 1, { version: 1 }))).toEqual(second);
      await expect(policy.generate(request(policy, 1, { version: 0 }))).rejects.toThrow(
        /version 0 of policy .* is not kept/,
      );
      expect((await policy.generate(request(policy, 1))).policyVersion).toBe(2);
    });

    it('refuses a prompt that is empty or leaves no room', async () => {
      const policy = await subject.playing();
      const long = new Array<number>(policy.context).fill(1);
      await expect(policy.generate(request(policy, 1, { prompt: long }))).rejects.toThrow(/leaves no room/);
      await expect(policy.generate(request(policy, 1, { prompt: [] }))).rejects.toThrow(BackendError);
    });

    it('drops an aborted request, with its reason, and no other', async () => {
      const policy = await subject.playing();
      const expected = await policy.generate(request(policy, 2));
      const controller = new AbortController();
      const dropped = policy.generate(request(policy, 1), controller.signal);
      const kept = policy.generate(request(policy, 2));
      const reason = new Error('no longer wanted');
      controller.abort(reason);
      await expect(dropped).rejects.toBe(reason);
      expect((await kept).tokens).toEqual(expected.tokens);
      const late = async () => policy.generate(request(policy, 1), controller.signal);
      await expect(late()).rejects.toBe(reason);
    });
  });
}
