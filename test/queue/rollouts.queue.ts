/** Episodes on a queue: a worker that dies costs time, and nothing else. */
import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { RunEvent, Step } from '@drmas/engine/events';
import { RandomStream } from '@drmas/engine/math';
import { afterAll, describe, expect, it } from 'vitest';
import { repeatedly, takesTime } from '../support/time-and-chance.js';
import { comparable, kill, killAll, noRedis, onQueue, startWorker, train } from './workers.js';

const unavailable = await noRedis();
if (unavailable !== undefined) console.log(`SKIPPED: the tests of rollouts on a queue, because ${unavailable}`);
const KILLS = Number(process.env.DRMAS_TEST_KILLS ?? 20);

afterAll(killAll);

describe.skipIf(unavailable !== undefined)('rollouts on a queue', () => {
  it(`equal the rollouts of one process although workers are killed ${KILLS} times`, async () => {
    const queue = `test-${process.pid}-kills`;
    const options = { queue, concurrency: 4, toolMs: 150 };
    const random = new RandomStream('kills');
    const workers: ChildProcess[] = [0, 1, 2].map(() => startWorker(options));
    const state = { over: false, kills: 0 };
    const killing = (async () => {
      while (!state.over && state.kills < KILLS) {
        await takesTime(500 + 2500 * random.uniform());
        const victim = random.integer(1, 2); // the first one lives
        await kill(workers[victim] as ChildProcess);
        state.kills++;
        workers[victim] = startWorker(options);
      }
    })();
    try {
      const steps = ['--set', `training.steps=${2 * KILLS}`];
      const there = await train('queue', [...onQueue(queue), ...steps], options.toolMs);
      state.over = true;
      await killing;
      console.log(`${state.kills} workers were killed while ${2 * KILLS} steps of 32 episodes were played`);
      const here = await train('process', steps, 0);
      expect(await comparable(there)).toEqual(await comparable(here));
      expect(state.kills).toBe(KILLS);
    } finally {
      state.over = true;
      await Promise.all(workers.map(kill));
    }
  });

  it('equal the rollouts of one process if a step is played ahead', async () => {
    const queue = `test-${process.pid}-ahead`;
    const workers = [0, 1].map(() => startWorker({ queue, concurrency: 8, toolMs: 20 }));
    const ahead = ['--set', 'rollout.staleness=1', '--set', 'training.steps=6'];
    try {
      const there = await train('ahead-on-queue', [...onQueue(queue), ...ahead], 20);
      const here = await train('ahead-in-process', ahead, 0);
      expect(await comparable(there)).toEqual(await comparable(here));
      const stale = here.events.filter((event): event is RunEvent & Step => event.type === 'step');
      expect(stale.map(({ staleness }) => staleness)).toEqual([0, 1, 1, 1, 1, 1]);
    } finally {
      await Promise.all(workers.map(kill));
    }
  });

  it('equal the rollouts of one process if every turn is played again', async () => {
    const queue = `test-${process.pid}-branches`;
    const workers = [0, 1].map(() => startWorker({ queue, concurrency: 8, toolMs: 0 }));
    const branched = ['--set', 'advantage={"type":"counterfactual"}'];
    try {
      const there = await train('branches-on-queue', [...onQueue(queue), ...branched], 0);
      const here = await train('branches-in-process', branched, 0);
      expect(await comparable(there)).toEqual(await comparable(here));
      const steps = here.events.filter((event): event is RunEvent & Step => event.type === 'step');
      expect(steps.map(({ baseline }) => baseline?.episodes)).toEqual([64, 64]);
    } finally {
      await Promise.all(workers.map(kill));
    }
  });

  it('equal the rollouts of one process if agents of other frameworks play, over the gateway of each worker', async () => {
    const queue = `test-${process.pid}-frameworks`;
    const workers = [0, 1].map(() => startWorker({ queue, concurrency: 4, toolMs: 0 }));
    const file = fileURLToPath(new URL('framework-team.ts', import.meta.url));
    try {
      const there = await train('frameworks-on-queue', onQueue(queue), 0, file);
      const here = await train('frameworks-in-process', [], 0, file);
      expect(await comparable(there)).toEqual(await comparable(here));
      const warnings = ({ events }: { events: RunEvent[] }) =>
        events.flatMap((event) => (event.type === 'warning' ? [`${event.code}: ${event.message}`] : []));
      expect(warnings(there)).toEqual(warnings(here));
      expect(warnings(here)).toContainEqual(
        expect.stringMatching(/^gateway\.ignored: judge: requests set temperature/),
      );
      const steps = here.events.filter((event): event is RunEvent & Step => event.type === 'step');
      expect(steps.map(({ agents }) => agents.judge?.turns)).toEqual([16, 16]);
    } finally {
      await Promise.all(workers.map(kill));
    }
  });

  it('are played 3.2 times as fast by four workers as by one, where tools are waited for; memory stays flat', async ({
    skip,
  }) => {
    const episodes = Number(process.env.DRMAS_TEST_EPISODES ?? 1200);
    const rate = async (count: number) => {
      const queue = `test-${process.pid}-rate-${count}`;
      const workers = Array.from({ length: count }, () => startWorker({ queue, concurrency: 1, toolMs: 50 }));
      const sizes: number[][] = [];
      try {
        // Workers load the recipe while the first step is played; the others are measured.
        const perStep = [
          'training.tasksPerStep=25',
          'training.groupSize=8',
          'evaluation.every=1000',
          'evaluation.tasks=1',
        ];
        const steps = 1 + Math.ceil((episodes / 200) * (count === 1 ? 0.25 : 1));
        const settings = [...perStep, `training.steps=${steps}`, 'evaluation.samples=1'];
        const endLook = repeatedly(2000, async () => sizes.push(await Promise.all(workers.map(residentMegabytes))));
        const words = settings.flatMap((setting) => ['--set', setting]);
        const { events } = await train(`rate-${count}`, [...onQueue(queue), ...words], 50).finally(() => endLook());
        const measured = events.filter((event): event is RunEvent & Step => event.type === 'step').slice(1);
        const seconds = measured.reduce((sum, { phaseSeconds }) => sum + (phaseSeconds.rollout ?? 0), 0);
        return { rate: (200 * measured.length) / seconds, sizes };
      } finally {
        await Promise.all(workers.map(kill));
      }
    };
    const one = await rate(1);
    const four = await rate(4);
    const largest = (sizes: readonly number[][]) => Math.max(...sizes.map((each) => Math.max(...each)));
    const half = Math.floor(four.sizes.length / 2);
    const [early, late] = [largest(four.sizes.slice(0, half)), largest(four.sizes.slice(half))];
    console.log(
      `${one.rate.toFixed(1)} episodes a second by one worker, ${four.rate.toFixed(1)} by four: ${(four.rate / one.rate).toFixed(2)} times; ` +
        `the largest worker ${early} MB in the first half, ${late} MB in the second`,
    );
    expect(late).toBeLessThan(1.2 * early);
    // One worker must wait for its tools most of the time, or the rates measure the load of the machine.
    const [crowded = 0] = loadavg();
    if (crowded > 2 * cpus().length)
      return skip(`other programs keep this machine busy: a load of ${crowded.toFixed(1)} on ${cpus().length} cores`);
    expect(four.rate / one.rate).toBeGreaterThan(3.2);
  });
});

async function residentMegabytes({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}
