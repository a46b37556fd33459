import { RandomStream } from '@drmas/engine/math';
import { afterAll, describe, expect, it } from 'vitest';
import { BrokenLawError, type Course, requireSameCourse, requireTrainedOnce, Samples } from './laws.js';
import { DiskOfProcess, SimulatedDisk } from './simulated-disk.js';
import { StuckError, VirtualTime } from './virtual-time.js';
import { judge, live, VARIANTS, worldOf } from './world.js';

const time = new VirtualTime();
afterAll(() => time.restore());

describe('the whole loop', () => {
  it('keeps its laws in worlds of every variant, with kills, interruptions and full disks', async () => {
    const worlds = Array.from({ length: VARIANTS }, (_, number) => worldOf(2, number));
    expect(worlds.flatMap(({ disturbances }) => disturbances).length).toBeGreaterThan(VARIANTS);
    for (const [number, world] of worlds.entries()) await judge({ ...world, variant: number % VARIANTS }, time);
  });

  it('has the same course again in the world of a number', async () => {
    const [first, second] = [await live(worldOf(3, 1), time), await live(worldOf(3, 1), time)];
    const bytes = ({ disk }: typeof first) => [...disk.files].map(([name, content]) => `${name} ${content.length}`);
    const temporary = /\.tmp-/;
    expect(bytes(first).filter((name) => !temporary.test(name))).toEqual(
      bytes(second).filter((name) => !temporary.test(name)),
    );
  });
});

describe('the simulation notices', () => {
  it('work that waits for what never comes', async () => {
    await expect(time.passUntilSettled(new Promise(() => {}), () => false)).rejects.toThrow(StuckError);
  });

  it('a course that differs', () => {
    const course: Course = { events: ['{"type":"step"}'], episodes: new Map(), weights: new Map([['a', '1']]) };
    requireSameCourse(course, course);
    expect(() => requireSameCourse({ ...course, events: [] }, course)).toThrow(BrokenLawError);
    expect(() => requireSameCourse({ ...course, weights: new Map([['a', '2']]) }, course)).toThrow(/last checkpoint/);
  });

  it('a sample that is trained twice, or never', async () => {
    const run = await live({ seed: 1, variant: 0, hostility: 0, disturbances: [] }, time);
    const turn = { id: 'a', policy: 'p', policyVersion: 0, prompt: [1], response: [2], advantage: 1 };
    const course = {
      events: [],
      episodes: new Map([['episodes/step-1.jsonl', [{ turns: [turn] }]]]),
      weights: new Map(),
    };
    const samples = (times: number) => {
      const noted = new Samples();
      for (let i = 0; i < times; i++) noted.note(0, 'p', 0, { tokens: Int32Array.of(1, 2) });
      return noted;
    };
    requireTrainedOnce({ ...run, samples: samples(1) }, course);
    expect(() => requireTrainedOnce({ ...run, samples: samples(2) }, course)).toThrow(/or holds once/);
    expect(() => requireTrainedOnce({ ...run, samples: samples(0) }, course)).toThrow(/never trained/);
  });
});

describe('the simulated disk', () => {
  it('ends a process in the middle of a call, and keeps earlier writes', async () => {
    const disk = new SimulatedDisk();
    const files = new DiskOfProcess(disk, new RandomStream('disk', 5), { at: 3, kind: 'kill' });
    let returned = false;
    const work = (async () => {
      await files.makeDirectory('/a');
      await files.write('/a/whole', 'content');
      await files.write('/a/half', 'content');
      returned = true;
    })();
    await time.passUntilSettled(work, () => files.dead);
    expect(returned).toBe(false);
    expect(disk.files.get('/a/whole')?.toString()).toBe('content');
    expect(disk.files.get('/a/half')?.length).toBeLessThan(7);
    expect(() => files.append('/a/whole', 'more', 7)).toThrow('EIO');
  });
});
