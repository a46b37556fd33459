/**
 * The thread of the watchdog. It ends the process and not what blocks: V8 can end running code, but Node's lists of
 * timers, immediates and asynchronous calls do not survive that.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { BEATS, END_AFTER, type SharedCounters, TELL_AFTER, WATCHING } from './shared.js';

const PERIOD_MS = 100;
/** Silence after which Ctrl-C is listened for here, because the watched thread does not hear it. */
const LISTEN_AFTER_MS = 1_500;
/** The exit code of the child that listens. */
const PRESSED = 77;
const ADVICE = 'Nothing else goes on meanwhile. Ctrl-C ends the process; so does the end of training.episodeTimeoutMs.';

const numbers = workerData as SharedCounters;
const at = (index: number) => Atomics.load(numbers, index);

let beat = at(BEATS);
let silentMs = 0;
/** The time of the next look into the thread. */
let lookAtMs = at(TELL_AFTER);
/** The result of the last look: the team's code that blocks. */
let blockage: string | undefined;
let session: Session | undefined;
let listener: ChildProcess | undefined;
/** Whether Ctrl-C was heard since the thread fell silent. */
let heard = false;

setInterval(() => {
  if (at(WATCHING) === 0 || at(BEATS) !== beat) return calm();
  silentMs += PERIOD_MS;
  if (silentMs >= LISTEN_AFTER_MS) listener ??= listen();
  if (silentMs >= lookAtMs && session === undefined) void look();
  if (silentMs >= at(END_AFTER) && blockage !== undefined) end(`error: ${blockage}\nIts episode's time is up.`);
}, PERIOD_MS);
parentPort?.postMessage('watching');

/** The watched thread goes on, or nothing is played. */
function calm(): void {
  beat = at(BEATS);
  silentMs = 0;
  lookAtMs = at(TELL_AFTER);
  blockage = undefined;
  heard = false;
  listener?.kill('SIGKILL');
  listener = undefined;
}

/** Pauses the watched thread as a debugger does, reads its current code, and lets it continue. */
async function look(): Promise<void> {
  const looking = new Session();
  session = looking;
  lookAtMs = 2 * silentMs;
  try {
    looking.connectToMainThread();
    looking.once('Debugger.paused', ({ params }) => void question(looking, params.callFrames[0]?.callFrameId));
    await looking.post('Debugger.enable');
    await looking.post('Debugger.pause');
  } catch {
    leave();
  }
}

async function question(looking: Session, callFrameId: string | undefined): Promise<void> {
  try {
    const expression = "globalThis[Symbol.for('drmas.blocked')]?.()";
    const answer =
      callFrameId === undefined
        ? undefined
        : await looking.post('Debugger.evaluateOnCallFrame', { callFrameId, expression, returnByValue: true });
    const place: unknown = answer?.result.value;
    if (typeof place === 'string') {
      if (blockage === undefined) say(`warning: ${place}\n${ADVICE}`);
      blockage = place;
    }
    await looking.post('Debugger.resume');
  } catch {
    // the thread went on by itself
  }
  leave();
}

function leave(): void {
  session?.disconnect();
  session = undefined;
}

/** Hears Ctrl-C in place of the watched thread: a child in the same group of processes, which a terminal tells too. */
function listen(): ChildProcess {
  const script = `trap 'exit ${PRESSED}' INT TERM HUP; while kill -0 "$0" 2> /dev/null; do sleep 1 & wait; done`;
  const child = spawn('sh', ['-c', script, String(process.pid)], { stdio: 'ignore' });
  child.on('error', () => {}); // no shell, no ears
  // A signal that comes before the shell has set its trap ends the shell itself.
  child.on('exit', (code, signal) => {
    if ((code === PRESSED || (signal !== null && signal !== 'SIGKILL')) && child === listener) hear();
  });
  return child;
}

/** The watched thread may be about to hear it too, unless it is known not to. The second time there is no waiting. */
function hear(): void {
  listener = undefined;
  if (heard || blockage !== undefined) end(`interrupted${blockage === undefined ? '' : `: ${blockage}`}`);
  heard = true;
}

function end(why: string): void {
  say(`${why}\nThe process ends. What was written is intact: drmas resume goes on from the last checkpoint.`);
  process.kill(process.pid, 'SIGKILL');
}

function say(text: string): void {
  writeSync(2, `${text}\n`);
}
