/**
 * The only file of tests that looks at the clock, sleeps, or makes bytes that look random; `npm run house` holds the
 * others to it. A test that sleeps until something has happened, or that expects an upper bound of a time, fails on a
 * machine that is busy with other work.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import fakeTimers from '@sinonjs/fake-timers';

// A test may replace the clock of the global object by a fake one.
const now = performance.now.bind(performance);

/** Milliseconds that `eventually` waits: less than a test has, so that its own error is the one that is seen. */
const PATIENCE_MS = 150_000;

/**
 * Checks again and again until the check neither throws nor returns false. Returns the value of the last check.
 * @param patienceMs Milliseconds after which the error of the last check is thrown; above 150,000 only in a test that
 *   has more time
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { patienceMs = PATIENCE_MS }: { patienceMs?: number } = {},
): Promise<Exclude<T, false>> {
  for (const until = now() + patienceMs; ; await sleep(3)) {
    try {
      const value = await check();
      if (value !== false) return value as Exclude<T, false>;
      if (now() > until) throw new Error(`${check} still gives false after ${patienceMs / 1000} s`);
    } catch (error) {
      if (now() > until) throw error;
    }
  }
}

/**
 * Takes as long as a stand-in for something slow: a tool, a server, a person. A test passes however long it takes in
 * fact. On a fake clock it takes that clock's time. To wait until something has happened is the work of `eventually`.
 */
export const takesTime = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Leaves time for what must not happen. A machine that is busy shows a fault less often this way, but a program without
 * the fault passes on every machine.
 */
export const timeForMishaps = (milliseconds: number): Promise<void> => sleep(milliseconds);

/** Acts again and again, as a stand-in for a loop of somebody else. Returns the function that ends it. */
export function repeatedly(milliseconds: number, action: () => unknown): () => void {
  const timer = setInterval(action, milliseconds);
  return () => clearInterval(timer);
}

/**
 * Does work for which time passes only as it says: timers and `performance` stand still until `pass` lets so many
 * milliseconds go by. What comes from other processes comes as ever; `eventually` waits for it. Not for work that calls
 * Node's `fetch`, which sets timers of one clock and clears them on the other.
 *
 * `stall` does work in one go, as a timer does: nothing is read from other processes meanwhile. Its `jump` lets
 * milliseconds go by.
 */
export async function onFakeClock<T>(
  work: (
    pass: (milliseconds: number) => Promise<unknown>,
    stall: (work: (jump: (milliseconds: number) => void) => void) => Promise<void>,
  ) => Promise<T>,
): Promise<T> {
  const { setTimeout: later } = globalThis;
  const timers = fakeTimers.install({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
  });
  try {
    return await work(
      (milliseconds) => timers.tickAsync(milliseconds),
      (stalling) =>
        new Promise((resolve) => {
          later(() => resolve(stalling((milliseconds) => timers.tick(milliseconds))), 0);
        }),
    );
  } finally {
    timers.uninstall();
  }
}

/** Ends a request or a stream that hangs, after so many milliseconds, so that a test fails by its own words. */
export const deadline = (milliseconds: number): AbortSignal => AbortSignal.timeout(milliseconds);

/**
 * Counts seconds by the clock. They may be printed, and a lower bound of them may be expected. For an upper bound take
 * `processorSeconds`.
 */
export function stopwatch(): () => number {
  const began = now();
  return () => (now() - began) / 1000;
}

/** Seconds of processor time that all threads of this process need for the work, however busy the machine is. */
export async function processorSeconds(work: () => unknown): Promise<number> {
  const began = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1e6;
}

/** Milliseconds since 1970, as turns are dated. On a fake clock it is that clock's time. */
export const timeOfDay = (): number => performance.timeOrigin + performance.now();

/** Bytes without a pattern that compress no better than random ones, and are the same in each run. */
export function bytesOf(seed: string, length: number): Buffer {
  const blocks = Array.from({ length: Math.ceil(length / 64) }, (_, i) =>
    createHash('sha512').update(`${seed} ${i}`).digest(),
  );
  return Buffer.concat(blocks, length);
}
