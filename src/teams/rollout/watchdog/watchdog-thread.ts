/**
 * The thread of the watchdog. It ends the process and not what blocks: V8 can end running code, but Node's lists of
 * timers, immediates and asynchronous calls do not survive that.
 */
import { writeSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { totalmem } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { HeldTime } from './held-time.js';
import {
  BEATS,
  END_AFTER,
  HEAP_LIMIT,
  HEAP_USED,
  type Look,
  QUESTIONS,
  type Questions,
  type SharedCounters,
  TELL_AFTER,
  WATCHING,
} from './shared.js';

const PERIOD_MS = 100;
/** Silence after which the thread is looked into, so that signals end the process. */
const LOOK_AFTER_MS = 1_500;
/** How often one look asks until it sees code of a team: a thread that runs microtasks is often between two of them. */
const MOST_QUESTIONS = 100;
/** The longest time for one question. A thread that ends its process waits until nobody asks any more. */
const QUESTION_MS = 500;
/** The time that the process has to end by itself. */
const EXIT_MS = 5_000;
const ADVICE = 'Nothing else goes on meanwhile. Ctrl-C ends the process; so does the end of training.episodeTimeoutMs.';
/** Above this share of its limit, memory is nearly full. */
const NEARLY_FULL = 0.9;
/** While a thread is silent: its memory is nearly full if the process has grown by this share of its limit. */
const GROWN = 0.5;
const MB = 2 ** 20;

const numbers = workerData as SharedCounters;
const at = (index: number) => Atomics.load(numbers, index);

let beat = at(BEATS);
let silentMs = 0;
/** The silence at which the next look begins. */
let lookAtMs = Math.min(LOOK_AFTER_MS, at(TELL_AFTER));
/** The result of the last look; undefined if the engine was at work. */
let seen: Look | undefined;
let isTold = false;
let isEnding = false;
let isLooking = false;
/** The memory of the process at the last beat, in bytes. */
let memoryAtBeat = 0;
/** The watched thread is the main thread, which has the number of the process. */
const heldTime = new HeldTime(() => process.pid);
let isMemoryTold = false;

setInterval(() => {
  watchMemory();
  if (at(BEATS) !== beat) return calm();
  silentMs += PERIOD_MS;
  if (!isLooking && silentMs >= lookAtMs) void look();
  if (seen === undefined || isEnding) return;
  const held = heldTime.ms(silentMs);
  if (!isTold && held >= at(TELL_AFTER)) tell(seen);
  const isOfTeam = at(WATCHING) > 0 || seen.scope !== '';
  if (isOfTeam && at(END_AFTER) > 0 && held >= at(END_AFTER)) end(seen);
}, PERIOD_MS);
parentPort?.postMessage('watching');

function calm(): void {
  beat = at(BEATS);
  silentMs = 0;
  lookAtMs = Math.min(LOOK_AFTER_MS, at(TELL_AFTER));
  seen = undefined;
  isTold = false;
  memoryAtBeat = process.memoryUsage.rss();
  heldTime.restart();
}

/** Reads the current code of the watched thread, several times if it is between two pieces of code. */
async function look(): Promise<void> {
  isLooking = true;
  lookAtMs = silentMs < at(TELL_AFTER) ? Math.min(2 * silentMs, at(TELL_AFTER)) : 2 * silentMs;
  let looked = seen?.owner === 'team' ? { ...seen, owner: 'unknown' as Look['owner'] } : seen;
  for (let count = 0; count < MOST_QUESTIONS && looked?.owner !== 'team' && at(BEATS) === beat; count++) {
    const next = (await inside('look')) as Look | undefined;
    if (next?.owner === 'engine') break;
    // Between two pieces of code a look finds less than an earlier one.
    if (next !== undefined)
      looked = { ...next, scope: next.scope || (looked?.scope ?? ''), place: next.place || (looked?.place ?? '') };
  }
  if (at(BEATS) === beat) seen = looked;
  isLooking = false;
}

/** Asks a question on top of the code that the watched thread runs. Undefined if no answer comes soon. */
async function inside(question: keyof Questions): Promise<unknown> {
  const looking = new Session();
  const patience = setTimeout(() => looking.disconnect(), QUESTION_MS);
  try {
    looking.connectToMainThread();
    const expression = `globalThis[Symbol.for('${QUESTIONS}')]?.${question}()\n//# sourceURL=node:watchdog`;
    const { result } = await looking.post('Runtime.evaluate', { expression, returnByValue: true });
    return result.value;
  } catch {
    return undefined;
  } finally {
    clearTimeout(patience);
    looking.disconnect();
  }
}

function textOf({ scope, place }: Look): string {
  const who = scope === '' ? 'code outside of drmas' : scope;
  return place === ''
    ? `${who} lets nothing else run: microtasks without an end`
    : `${who} does not return, at\n${place}`;
}

function tell(blocking: Look): void {
  isTold = true;
  say(`warning: ${textOf(blocking)}\n${ADVICE}`);
}

/** Ends the process from inside, with an exit code. A signal that ends it would look as if memory had run out. */
function end(blocking: Look): void {
  isEnding = true;
  say(
    `error: ${textOf(blocking)}\nIts episode's time is up. The process ends. What was written is intact: drmas resume goes on from the last checkpoint.`,
  );
  void endFromInside();
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), EXIT_MS);
}

async function endFromInside(): Promise<void> {
  for (;;) await inside('end');
}

/** Says once that memory is nearly full, because nothing can be said when it is. */
function watchMemory(): void {
  if (isMemoryTold) return;
  const limit = at(HEAP_LIMIT);
  const now = process.memoryUsage.rss();
  const grown = silentMs > 0 ? (now - memoryAtBeat) / MB : 0;
  const all = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  if (at(HEAP_USED) > NEARLY_FULL * limit || grown > GROWN * limit)
    sayMemory(
      `the JavaScript objects of this process take ${Math.max(at(HEAP_USED), Math.round(grown))} MB of at most ${limit} MB. At the limit Node ends the process. Does the team keep values of every episode? NODE_OPTIONS=--max-old-space-size=${2 * limit} doubles the limit`,
    );
  else if (now > NEARLY_FULL * all)
    sayMemory(
      `this process takes ${Math.round(now / MB)} MB of ${Math.round(all / MB)} MB of memory. The system may end it without a message. A lower training.concurrency, a smaller batch or a smaller model needs less`,
    );
}

function sayMemory(text: string): void {
  isMemoryTold = true;
  say(`warning: ${text}.${seen === undefined ? '' : ` Now runs: ${textOf(seen)}`}`);
}

function say(text: string): void {
  writeSync(2, `${text}\n`);
}
