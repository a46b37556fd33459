/**
 * Notices code of a team that does not return: a loop, an exploding regular expression. While it runs, no timer fires
 * and no signal is handled, so a thread of its own watches. It looks into the blocked thread as a debugger does, says
 * where it stands, and ends the process when the episode's time is up or somebody presses Ctrl-C.
 */
import { fileURLToPath } from 'node:url';
import { currentScope, startWorker } from '../../../base/platform.js';
import { placeOf } from '../episode-failure.js';
import { BEATS, END_AFTER, type SharedCounters, TELL_AFTER, WATCHING } from './shared.js';

interface WatchdogOptions {
  /** Time until the terminal says what blocks. */
  readonly tellAfterMs?: number;
}

let shared: SharedCounters | undefined;

/**
 * Watches all rollouts of this process from now on.
 * @returns a promise that waits for the first look; without it the watch begins a moment later
 */
export async function enableWatchdog({ tellAfterMs = 5_000 }: WatchdogOptions = {}): Promise<void> {
  if (shared !== undefined) return;
  const numbers = new Int32Array(new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT));
  shared = numbers;
  numbers[TELL_AFTER] = tellAfterMs;
  Object.assign(globalThis, { [Symbol.for('drmas.blocked')]: blocked });
  setInterval(() => Atomics.add(numbers, BEATS, 1), 100).unref();
  const thread = startWorker('watchdog-thread', import.meta.url, numbers);
  const ready = new Promise<void>((resolve) => {
    thread.once('message', () => resolve());
    thread.once('error', () => resolve()); // without a watchdog everything else goes on
  });
  thread.unref();
  await ready;
}

/**
 * Begins to watch, if the process has a watchdog. @param endAfterMs the longest that code may run without returning
 * @returns a function that ends the watch
 */
export function watchTeams(endAfterMs: number): () => void {
  if (shared === undefined) return () => {};
  const numbers = shared;
  numbers[END_AFTER] = Math.min(endAfterMs, 2 ** 31 - 1);
  Atomics.add(numbers, WATCHING, 1);
  return () => void Atomics.sub(numbers, WATCHING, 1);
}

/** The package's code: `dist/src` if it was compiled, else `src`. */
const engine = fileURLToPath(new URL('../../../', import.meta.url));
const sources = engine.replace(/dist([\\/])src([\\/])$/, 'src$2');

/**
 * The watchdog calls it inside the code that blocks. It reports only code of a team: the engine may take its
 * time.
 * @returns the episode and the place; undefined if the blocking code does not belong to a team
 */
function blocked(): string | undefined {
  const scope = currentScope();
  const place = placeOf(new Error());
  if (scope === undefined || place === undefined) return undefined;
  const innermost = place.split('\n').find((line) => !line.includes('<anonymous>')) ?? '';
  if (innermost.includes(engine) || innermost.includes(sources)) return undefined;
  return `${scope.name} does not return, at\n${place}`;
}
