/** The contract of weights and optimisers that are saved, loaded and copied, on every backend. */

import type { CriticHandle } from '@drmas/engine/contract';
import { BackendError, CheckpointError } from '@drmas/engine/errors';
import { describe, expect, it } from 'vitest';
import { demonstrations, learn, logprobsOf, optimizer, type Subject, step, written } from './subject.js';

export function stateContract(subject: Subject): void {
  describe('state', () => {
    it('is copied between policies of one shape, and refused to others', async () => {
      const [from, to] = [await subject.policy(1), await subject.policy(2)];
      await learn(from, demonstrations(1));
      await step(from);
      await to.copyFrom(from);
      subject.expectEqualRows(await logprobsOf(to), await logprobsOf(from));
      const other = await subject.backend.open(subject.test.misfit, 'policy', 'misfit');
      await expect(other.copyFrom(from)).rejects.toThrow(BackendError);
      await expect(from.copyFrom(other)).rejects.toThrow(BackendError);
    });

    it('resumes from saved weights without a difference', async () => {
      const policy = await subject.playing();
      for (const seed of [1, 2]) {
        await learn(policy, demonstrations(seed));
        await step(policy);
        await policy.publish();
      }
      const path = await subject.directory();
      await policy.save(path, { optimizer: true });
      const again = await subject.policy(5);
      await again.load(path, { optimizer: true });
      subject.expectEqualRows(await logprobsOf(again), await logprobsOf(policy));
      for (const each of [policy, again]) {
        await learn(each, demonstrations(3));
        await step(each);
      }
      subject.expectEqualRows(await logprobsOf(again), await logprobsOf(policy));
      // The loaded weights are the weights of version 2. They are published once more before an agent plays.
      expect(await again.publish()).toBe(2);
    });

    it('leaves the optimiser as it is where only weights are loaded', async ({ skip }) => {
      if (subject.test.alwaysLoadsMoments) return skip('its server loads the moments whatever it is asked for');
      const policy = await subject.policy();
      await learn(policy, demonstrations(1));
      await step(policy);
      const path = await subject.directory();
      await policy.save(path, { optimizer: true });
      const fresh = await subject.policy(5);
      await fresh.load(path, { optimizer: false });
      for (const each of [policy, fresh]) {
        await learn(each, demonstrations(3));
        await step(each);
      }
      expect(await logprobsOf(fresh)).not.toEqual(await logprobsOf(policy));
    });

    for (const optimizer of [
      { type: 'sgd', learningRate: 0.5, momentum: 0.9, nesterov: true, weightDecay: 0.01 },
      { type: 'nigt', learningRate: 0.1, momentum: 0.8 },
    ] as const)
      it(`resumes with the saved momentum of ${optimizer.type}`, async ({ skip }) => {
        if (!subject.can.optimizers.includes(optimizer.type)) return skip(`it has no ${optimizer.type}`);
        const policy = await subject.policy();
        for (const seed of [1, 2]) {
          await learn(policy, demonstrations(seed));
          await step(policy, { optimizer });
        }
        const path = await subject.directory();
        await policy.save(path, { optimizer: true });
        const [again, fresh] = [await subject.policy(5), await subject.policy(5)];
        await again.load(path, { optimizer: true });
        await fresh.load(path, { optimizer: false });
        for (const each of [policy, again, fresh]) {
          await learn(each, demonstrations(3));
          await step(each, { optimizer });
        }
        expect(await logprobsOf(again)).toEqual(await logprobsOf(policy));
        expect(await logprobsOf(fresh)).not.toEqual(await logprobsOf(policy));
      });

    it('begins with a fresh optimiser after a reset', async () => {
      const [used, fresh] = [await subject.policy(), await subject.policy()];
      await learn(used, demonstrations(1));
      await step(used);
      await fresh.copyFrom(used);
      await used.resetOptimizer();
      for (const each of [used, fresh]) {
        await learn(each, demonstrations(2));
        await step(each);
      }
      subject.expectEqualRows(await logprobsOf(used), await logprobsOf(fresh));
    });

    it('of a frozen model stays as the policy was, and can be loaded again from its files', async () => {
      const policy = await subject.policy();
      await learn(policy, demonstrations(1));
      await step(policy);
      const reference = await subject.backend.open({ type: 'like', policy }, 'frozen', 'reference');
      const first = await logprobsOf(reference);
      subject.expectEqualRows(first, await logprobsOf(policy));
      const directory = await subject.directory();
      await reference.save(directory);
      await learn(policy, demonstrations(2));
      await step(policy);
      subject.expectEqualRows(await logprobsOf(reference), first);
      expect(await logprobsOf(policy)).not.toEqual(first);
      const again = await subject.backend.open({ type: 'like', policy, directory }, 'frozen', 'again');
      subject.expectEqualRows(await logprobsOf(again), first);
    });

    it('of a critic is separate from its policy, learns returns, and resumes from its files', async ({ skip }) => {
      if (subject.can.roles.critic.length === 0) return skip('it has no critics');
      const policy = await subject.policy();
      const before = await logprobsOf(policy);
      const samples = demonstrations(4);
      const teach = async (critic: CriticHandle) => {
        const old = await critic.values(samples);
        const lessons = samples.map(({ tokens, mask }, i) => ({
          tokens,
          mask,
          oldValues: old[i] as Float32Array,
          returns: Float32Array.from(tokens, (token) => token / 256),
        }));
        const { loss } = await critic.forwardBackward(lessons, { clip: 10, normalizer: written(samples) });
        expect(await critic.optimStep({ optimizer, clipNorm: 1 })).toMatchObject({ applied: true });
        return loss;
      };
      const open = (directory?: string) =>
        subject.backend.open({ type: 'like', policy, directory }, 'critic', 'critic');
      const critic = await open();
      expect((await critic.values(samples)).every((row) => row.every((value) => value === 0))).toBe(true);
      const losses: number[] = [];
      for (let i = 0; i < 10; i++) losses.push(await teach(critic));
      expect(losses.at(-1)).toBeLessThan((losses[0] as number) / 2);
      expect(await logprobsOf(policy)).toEqual(before);

      const path = await subject.directory();
      await critic.save(path);
      const again = await open(path);
      expect(await again.values(samples)).toEqual(await critic.values(samples));
      for (const each of [critic, again]) await teach(each);
      expect(await again.values(samples)).toEqual(await critic.values(samples));
      await expect(open(await subject.directory())).rejects.toThrow(CheckpointError);
    });

    it('names the fault of a directory', async () => {
      const policy = await subject.policy();
      const path = await subject.directory();
      await expect(policy.load(path, { optimizer: false })).rejects.toThrow(CheckpointError);
      await policy.save(path, { optimizer: false });
      if (subject.can.weights === 'here')
        await expect(policy.load(path, { optimizer: true })).rejects.toThrow(CheckpointError);
      const other = await subject.backend.open(subject.test.misfit, 'policy', 'misfit');
      await expect(other.load(path, { optimizer: false })).rejects.toThrow(/'misfit' has \w+ \S+, the checkpoint/);
    });
  });
}
