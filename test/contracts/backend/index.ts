/** The contract of every backend. Each block first reads the capabilities of the backend. */

import { BackendError } from '@drmas/engine/errors';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { samplingContract } from './sampling.js';
import { stateContract } from './state.js';
import { type BackendUnderTest, demonstrations, logprobsOf, Subject } from './subject.js';
import { trainingContract } from './training.js';

export function backendContract(name: string, test: BackendUnderTest): void {
  const subject = new Subject(test);
  describe(`${name} keeps the backend contract`, () => {
    const [before, after] = test.freshForEachTest ? [beforeEach, afterEach] : [beforeAll, afterAll];
    before(() => subject.start());
    after(() => subject.stop());
    samplingContract(subject);
    trainingContract(subject);
    stateContract(subject);

    it('opens the weights it says it opens', () => {
      const { roles } = subject.can;
      expect(roles.policy).toContain(test.weights().type);
      expect(roles.policy).toContain(test.misfit.type);
      expect(roles.frozen).toContain('like');
    });

    it('opens models of one name, which have nothing else in common', async () => {
      const { backend } = subject;
      const [one, other] = [
        await backend.open(test.weights(1), 'policy', 'same'),
        await backend.open(test.weights(1), 'policy', 'same'),
      ];
      await one.publish();
      expect([one.name, other.name]).toEqual(['same', 'same']);
      expect(await one.publish()).toBe(1);
      expect(await other.publish()).toBe(0);
    });
  });

  it(`${name} refuses policies of another backend, and models like them`, async () => {
    const [backend, other] = [await test.open(), await test.open()];
    try {
      const [policy, stranger] = [
        await backend.open(test.weights(), 'policy', 'here'),
        await other.open(test.weights(), 'policy', 'elsewhere'),
      ];
      await expect(policy.copyFrom(stranger)).rejects.toThrow(BackendError);
      const like = async () => backend.open({ type: 'like', policy: stranger }, 'frozen', 'reference');
      await expect(like()).rejects.toThrow(BackendError);
      subject.expectEqualRows(await logprobsOf(policy), await logprobsOf(stranger));
    } finally {
      await Promise.all([backend.dispose(), other.dispose()]);
    }
  });

  it(`${name} rejects pending and later requests once it is disposed of`, async () => {
    const backend = await test.open();
    const policy = await backend.open(test.weights(), 'policy', 'one');
    const pending = policy.logprobs(demonstrations(1));
    const outcome = pending.catch((error: unknown) => error);
    await backend.dispose();
    await backend.dispose();
    if (!(test.mayStillAnswer && Array.isArray(await outcome))) expect(await outcome).toBeInstanceOf(BackendError);
    await expect(policy.publish()).rejects.toThrow(BackendError);
    await expect((async () => backend.open(test.weights(), 'policy', 'two'))()).rejects.toThrow(BackendError);
  });
}
