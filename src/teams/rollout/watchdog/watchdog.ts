/**
 * Notices code that does not return: a loop, an exploding regular expression, microtasks without an end, also those
 * that an episode has left behind. While they run, no timer fires and no signal is handled, so a thread of its own
 * watches. It interrupts the blocked thread as a debugger does, says where it stands, lets signals end the process, and
 * ends it when the episode's time is up.
 */
import { closeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { getHeapStatistics } from 'node:v8';
import { waitMs } from '@drmas/engine/host';
import { currentScope, startWorker } from '@drmas/engine/platform';
import { placeOf } from '../episode-failure.js';
import { libraryPaths } from './library-folders.js';
import {
  BEATS,
  END_AFTER,
  HEAP_LIMIT,
  HEAP_USED,
  type Look,
  NUMBERS,
  QUESTIONS,
  type Questions,
  type SharedCounters,
  TELL_AFTER,
  WATCHING,
} from './shared.js';

interface WatchdogOptions {
  /** Time until the terminal says what blocks. */
  readonly tellAfterMs?: number;
}

const BEAT_MS = 100;
const STDERR = 2;
const MB = 2 ** 20;

let shared: SharedCounters | undefined;

/**
 * Watches this process from now on.
 * @returns a promise that waits for the first look; without it the watch begins a moment later
 */
export async function enableWatchdog({ tellAfterMs = 5_000 }: WatchdogOptions = {}): Promise<void> {
  if (shared !== undefined) return;
  const numbers = new Int32Array(new SharedArrayBuffer(NUMBERS * Int32Array.BYTES_PER_ELEMENT));
  shared = numbers;
  ours = foldersOfDrmas();
  numbers[TELL_AFTER] = tellAfterMs;
  numbers[HEAP_LIMIT] = getHeapStatistics().heap_size_limit / MB;
  const questions: Questions = { look, end: () => exitAtOnce(1) };
  Object.assign(globalThis, { [Symbol.for(QUESTIONS)]: questions });
  setInterval(() => {
    Atomics.add(numbers, BEATS, 1);
    Atomics.store(numbers, HEAP_USED, getHeapStatistics().used_heap_size / MB);
    listenAgain();
  }, BEAT_MS).unref();
  const thread = startWorker('watchdog-thread', import.meta.url, numbers);
  const ready = new Promise<void>((resolve) => {
    thread.once('message', () => resolve());
    thread.once('error', () => resolve()); // without a watchdog everything else goes on
  });
  thread.unref();
  await ready;
}

/**
 * Begins to watch a rollout, if the process has a watchdog. @param endAfterMs the longest that code may run without
 * returning
 * @returns a function that ends the watch
 */
export function watchTeams(endAfterMs: number): () => void {
  if (shared === undefined) return () => {};
  const numbers = shared;
  numbers[END_AFTER] = waitMs(endAfterMs);
  Atomics.add(numbers, WATCHING, 1);
  return () => void Atomics.sub(numbers, WATCHING, 1);
}

/** The folders of drmas's code: `dist/src` if it was compiled, else `src`, and its libraries. */
let ours: readonly string[] = [];

function foldersOfDrmas(): string[] {
  const own = fileURLToPath(new URL('../../../', import.meta.url));
  return [own, own.replace(/dist([\\/])src([\\/])$/, 'src$2'), ...libraryPaths()];
}

/** The frames in which drmas calls a callback of a team. */
const WRAPPER = /[\\/]async-scopes\.[jt]s:/;

function look(): Look {
  const scope = currentScope()?.name ?? '';
  const frames = (placeOf(new Error()) ?? '').split('\n').filter((line) => !WRAPPER.test(line));
  const place = frames.join('\n');
  const innermost = frames.find((line) => !line.includes('<anonymous>')) ?? '';
  if (ours.some((folder) => innermost.includes(folder))) return { owner: 'engine', scope, place };
  stopListening();
  return { owner: place === '' ? 'unknown' : 'team', scope, place };
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** The listeners that the blocked thread would not reach. */
const waiting: [(typeof SIGNALS)[number], NodeJS.SignalsListener][] = [];

/** Without a listener Node gives a signal its default effect, although the thread is blocked. */
function stopListening(): void {
  for (const name of SIGNALS)
    for (const listener of process.rawListeners(name)) {
      waiting.push([name, listener as NodeJS.SignalsListener]);
      process.removeListener(name, listener as NodeJS.SignalsListener);
    }
}

function listenAgain(): void {
  for (const [name, listener] of waiting.splice(0)) process.on(name, listener);
}

/**
 * Ends the process without the listeners of `exit`, which may be a team's and would run while all else is stopped.
 * Node would say that it waits for a debugger, which is the watchdog.
 */
function exitAtOnce(code: number): void {
  closeSync(STDERR);
  (process as unknown as { reallyExit(code: number): void }).reallyExit(code);
}
