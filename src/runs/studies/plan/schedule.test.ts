import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  aloneSeconds,
  type MachineSpeed,
  type Schedule,
  type ScheduledEpisode,
  simulateSchedule,
  updateSeconds,
} from './schedule.js';

const call = fc.record({
  wait: fc.double({ min: 0, max: 3, noNaN: true }),
  promptTokens: fc.integer({ min: 1, max: 40 }),
  responseTokens: fc.integer({ min: 1, max: 20 }),
});
/** Episodes whose calls wait for the previous call or for any earlier call. */
const episode: fc.Arbitrary<ScheduledEpisode> = fc
  .tuple(fc.array(fc.tuple(call, fc.nat()), { maxLength: 4 }), fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([calls, rest]) => ({
    calls: calls.map(([one, back], i) => ({ ...one, after: i === 0 ? undefined : i - 1 - (back % i) })),
    rest,
  }));
const speed = (shared: fc.Arbitrary<boolean>): fc.Arbitrary<MachineSpeed> =>
  fc.record({
    sampling: fc.record({
      iterationSeconds: fc.double({ min: 0.001, max: 0.1, noNaN: true }),
      sequenceSeconds: fc.double({ min: 0, max: 0.1, noNaN: true }),
      promptTokenSeconds: fc.double({ min: 0, max: 0.05, noNaN: true }),
      engines: fc.integer({ min: 1, max: 3 }),
    }),
    training: fc.record({
      tokenSeconds: fc.double({ min: 0, max: 0.02, noNaN: true }),
      updateSeconds: fc.double({ min: 0, max: 2, noNaN: true }),
    }),
    transferSeconds: fc.double({ min: 0, max: 2, noNaN: true }),
    shared,
  });
const schedule: fc.Arbitrary<Schedule> = fc.record({
  steps: fc.array(fc.array(episode, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 5 }),
  atOnce: fc.integer({ min: 1, max: 12 }),
  staleness: fc.integer({ min: 0, max: 2 }),
  checkpointEvery: fc.integer({ min: 1, max: 4 }),
  epochs: fc.integer({ min: 0, max: 2 }),
});

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
const little = 1e-9;

describe('a simulated schedule', () => {
  it('takes at least its critical path and at most the sum of everything one after the other', () => {
    fc.assert(
      fc.property(schedule, speed(fc.boolean()), (planned, machine) => {
        const { seconds, ends } = simulateSchedule(planned, machine);
        const { engines, iterationSeconds, sequenceSeconds, promptTokenSeconds } = machine.sampling;
        const updates = planned.steps.map((episodes) => updateSeconds(machine, episodes, planned.epochs));
        const learning = sum(updates) + planned.steps.length * machine.transferSeconds;
        const longest = planned.steps.map((episodes) =>
          Math.max(...episodes.map((one) => aloneSeconds(one, machine, engines))),
        );
        const critical = planned.staleness === 0 ? sum(longest) + learning : (longest[0] ?? 0) + learning;
        const calls = planned.steps.flat().flatMap((one) => one.calls);
        const serial =
          sum(planned.steps.flat().map(({ rest }) => rest)) +
          sum(
            calls.map(
              ({ wait, promptTokens, responseTokens }) =>
                wait + promptTokens * promptTokenSeconds + responseTokens * (iterationSeconds + sequenceSeconds),
            ),
          );
        expect(seconds).toBeGreaterThanOrEqual(critical * (1 - little));
        expect(seconds).toBeLessThanOrEqual((serial + learning) * (1 + little) + little);
        expect(ends).toHaveLength(planned.steps.length);
      }),
      { numRuns: 2000 },
    );
  });

  it('is exactly the sum if one episode is played at a time', () => {
    fc.assert(
      fc.property(schedule, speed(fc.boolean()), (planned, machine) => {
        const { seconds } = simulateSchedule({ ...planned, atOnce: 1, staleness: 0 }, machine);
        const played = sum(planned.steps.flat().map((one) => aloneOrTogether(one, machine)));
        const learning = planned.steps.map(
          (episodes) => updateSeconds(machine, episodes, planned.epochs) + machine.transferSeconds,
        );
        expect(seconds).toBeCloseTo(played + sum(learning), 6);
      }),
    );
  });

  it('is never slower if a step is played ahead and no episode waits for another', () => {
    fc.assert(
      fc.property(schedule, speed(fc.boolean()), (planned, machine) => {
        const at = (staleness: number) =>
          simulateSchedule({ ...planned, atOnce: Number.POSITIVE_INFINITY, staleness }, machine).seconds;
        expect(at(1)).toBeLessThanOrEqual(at(0) * (1 + little));
      }),
      { numRuns: 2000 },
    );
  });

  it('saves all the waiting for tools that overlaps with learning', () => {
    const one = { calls: [{ wait: 10, promptTokens: 1, responseTokens: 1 }], rest: 0 };
    const machine: MachineSpeed = {
      sampling: { iterationSeconds: 1, sequenceSeconds: 0, promptTokenSeconds: 0, engines: 1 },
      training: { tokenSeconds: 0, updateSeconds: 5 },
      transferSeconds: 1,
      shared: true,
    };
    const planned = { steps: [[one], [one], [one]], atOnce: 100, checkpointEvery: 100, epochs: 1 };
    expect(simulateSchedule({ ...planned, staleness: 0 }, machine).seconds).toBe(3 * (10 + 1 + 5 + 1));
    // The first two are played together. The third begins after the update on the first, and is sampled after 10 s.
    expect(simulateSchedule({ ...planned, staleness: 1 }, machine).ends).toEqual([17, 23, 34]);
    // With a checkpoint after each step, no rollout begins ahead.
    const kept = simulateSchedule({ ...planned, checkpointEvery: 1, staleness: 1 }, machine);
    expect(kept.seconds).toBe(simulateSchedule({ ...planned, staleness: 0 }, machine).seconds);
  });

  it('plays ten thousand episodes at once within seconds', { tags: 'verify' }, () => {
    const calls = [0, 1, 2].map((i) => ({
      wait: 0.1 * i,
      promptTokens: 50,
      responseTokens: 20 + i,
      after: i === 0 ? undefined : i - 1,
    }));
    const episodes = Array.from({ length: 10_000 }, (_, i) => ({ calls: calls.slice(0, 1 + (i % 3)), rest: 0 }));
    const machine: MachineSpeed = {
      sampling: { iterationSeconds: 0.01, sequenceSeconds: 1e-5, promptTokenSeconds: 1e-6, engines: 4 },
      training: { tokenSeconds: 1e-6, updateSeconds: 0 },
      transferSeconds: 0,
      shared: false,
    };
    const planned = { steps: [episodes, episodes], staleness: 1, checkpointEvery: 100, epochs: 1 };
    const few = simulateSchedule({ ...planned, atOnce: 100 }, machine);
    const many = simulateSchedule({ ...planned, atOnce: 10_000 }, machine);
    expect(many.seconds).toBeLessThan(few.seconds / 3);
  });
});

/** An episode alone. Its parallel calls share the batch, so it is simulated. */
function aloneOrTogether(one: ScheduledEpisode, machine: MachineSpeed): number {
  const isChain = one.calls.every(({ after }, i) => after === (i === 0 ? undefined : i - 1));
  if (isChain) return aloneSeconds(one, machine);
  const alone = { steps: [[one]], atOnce: 1, staleness: 0, checkpointEvery: 1, epochs: 0 };
  const free = { ...machine, training: { tokenSeconds: 0, updateSeconds: 0 }, transferSeconds: 0 };
  return simulateSchedule(alone, free).seconds;
}
