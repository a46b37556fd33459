import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { takesTime } from '../../../test/support/time-and-chance.js';
import { type Contestant, interleave, summarise } from './interleave.js';
import { busyTicks, peakResidentBytes, processTicks, usageBetween } from './processor-time.js';

const counting = (name: string, order: string[], amount: () => number): Contestant => ({
  name,
  threads: 1,
  unit: 'token',
  async repeat() {
    order.push(name);
    return { amount: amount(), seconds: 2 };
  },
});

describe('interleave', () => {
  it('takes turns, beginning with another one each round', async () => {
    const order: string[] = [];
    const series = await interleave(
      ['a', 'b', 'c'].map((name) => counting(name, order, () => 1)),
      { repetitions: 2, budgetSeconds: 60 },
    );
    expect(order.slice(0, 6)).toEqual(['a', 'b', 'c', 'b', 'c', 'a']);
    expect(series.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });

  it('makes one round whatever the budget', async () => {
    const order: string[] = [];
    await interleave([counting('a', order, () => 1)], { repetitions: 9, budgetSeconds: 0 });
    expect(order).toEqual(['a']);
  });

  it('gives a variant up that is far slower than its sibling, and nobody else', async () => {
    let end: (error: Error) => void = () => {};
    const stuck: Contestant = {
      ...counting('peer, on two threads', [], () => 1),
      repeat: () => new Promise((_, reject) => (end = reject)),
      abandon: () => end(new Error('killed')),
    };
    const quick: Contestant = {
      ...counting('peer, alone', [], () => 4),
      repeat: async () => ({ amount: 4, seconds: 0.001 }),
    };
    const schedule = { repetitions: 1, budgetSeconds: 60, patienceSeconds: 0.05 };
    const [first, second] = await interleave([quick, stuck], schedule);
    expect(first?.problem).toBeUndefined();
    expect(first?.repetitions.length).toBeGreaterThan(0); // a busy machine repeats what was not clean
    expect(second).toMatchObject({ problem: expect.stringMatching(/^given up after/), repetitions: [] });
  });

  it('gives no variant up for the length of a repetition whose steps are timed one by one', async () => {
    const ofSteps = (name: string): Contestant => {
      let end: (error: Error) => void = () => {};
      return {
        ...counting(name, [], () => 1),
        repeat: () =>
          new Promise((resolve, reject) => {
            end = reject;
            void takesTime(60).then(() => resolve({ amount: 1, seconds: 0.001 }));
          }),
        abandon: () => end(new Error('killed')),
      };
    };
    const schedule = { repetitions: 2, budgetSeconds: 60, patienceSeconds: 0.03 };
    const series = await interleave([ofSteps('peer, alone'), ofSteps('peer, on two threads')], schedule);
    expect(series.map(({ problem }) => problem)).toEqual([undefined, undefined]);
  });

  it('says how a process ended, also if it ended before its first repetition', async () => {
    const { pid } = spawnSync(process.execPath, ['--version']);
    const ended: Contestant = {
      ...counting('ended', [], () => 1),
      pid,
      repeat: () => Promise.reject(new Error('SIGKILL')),
    };
    expect(await interleave([ended], { repetitions: 1, budgetSeconds: 60 })).toMatchObject([{ problem: 'SIGKILL' }]);
    expect(peakResidentBytes(pid)).toBeUndefined();
  });

  it('drops a contestant that fails and goes on with the others', async () => {
    const order: string[] = [];
    const failing: Contestant = { ...counting('bad', order, () => 1), repeat: () => Promise.reject(new Error('gone')) };
    const [bad, good] = await interleave([failing, counting('good', order, () => 4)], {
      repetitions: 1,
      budgetSeconds: 60,
    });
    expect(bad).toMatchObject({ problem: 'gone', repetitions: [] });
    expect(good?.repetitions[0]?.rate).toBe(2);
  });
});

describe('summarise', () => {
  const repetition = (rate: number, clean: boolean | undefined) => ({
    amount: rate,
    seconds: 1,
    rate,
    ownCores: 1,
    otherCores: 0,
    wallSeconds: 1,
    clean,
  });
  const series = (...repetitions: ReturnType<typeof repetition>[]) => ({
    name: 'a',
    threads: 1,
    unit: 'token',
    repetitions,
  });

  it('uses clean repetitions only, where there are any', () => {
    const summary = summarise(series(repetition(10, true), repetition(1, false), repetition(14, true)));
    expect(summary).toEqual({ median: 12, low: 10, high: 14, used: 2, total: 3, clean: true });
  });

  it('says when none was clean and when nobody knows', () => {
    expect(summarise(series(repetition(3, false)))).toMatchObject({ median: 3, clean: false });
    expect(summarise(series(repetition(3, undefined)))).toMatchObject({ median: 3, clean: undefined });
    expect(summarise(series())).toBeUndefined();
  });
});

describe('processor time', () => {
  it('counts what kept cores busy, stolen time too, but neither idling nor waiting for disks', () => {
    expect(busyTicks('cpu  1 2 4 1000 2000 8 16 32 64 64\ncpu0 9 9 9 9 9 9 9 9\n')).toBe(63);
  });

  it('reads the times of a process whatever its name', () => {
    const fields = Array.from({ length: 40 }, (_, i) => String(i + 4)); // field 4 first
    expect(processTicks(`17 (a) b (c) S ${fields.join(' ')}`)).toBe(14 + 15);
  });

  it('calls a measurement clean when others had next to nothing', () => {
    const at = (busy: number | undefined, measured: number, wall: number) => ({ busy, measured, wall });
    expect(usageBetween(at(100, 5, 50), at(104.1, 9, 52))).toMatchObject({ ownCores: 2, clean: true });
    expect(usageBetween(at(100, 5, 50), at(105, 9, 52))).toMatchObject({ otherCores: 0.5, clean: false });
    expect(usageBetween(at(undefined, 5, 50), at(undefined, 9, 52))).toMatchObject({ clean: undefined });
  });
});
