/** Protects the exit code and stdout of a command from the code of a recipe. */
import { writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import type { Host } from '@drmas/engine/host';
import { INTERRUPTED } from './command-context.js';

/** The parts of the process that a recipe's code might use. */
type Guarded = Pick<NodeJS.Process, 'on' | 'exitCode'>;

/**
 * Reports a `process.exit` in a recipe's code, with its place, and sets the exit code to 1.
 * @returns A function to call when the command has ended
 */
export function guardExit(process: Guarded, write: (text: string) => void = writeError): () => void {
  let ended = false;
  let failed = false;
  process.on('uncaughtExceptionMonitor', () => {
    failed = true;
  });
  process.on('exit', (code) => {
    if (ended || code === INTERRUPTED) return;
    const place = (new Error().stack ?? '').split('\n').filter((line) => /^\s+at /.test(line) && !IGNORED.test(line));
    if (failed && place.length === 0) return; // no code called `exit`, and Node prints the error
    write(
      `error: the code of the recipe ended the process before the command was done, with exit code ${code}\n${place.join('\n')}\n`,
    );
    process.exitCode = 1;
  });
  return () => {
    ended = true;
  };
}

const IGNORED = /[( ]node:|[\\/]process-guard\.[jt]s:/;
/** Writes synchronously, because the process may exit next. */
const writeError = (text: string) => void writeSync(2, text);

/**
 * Reserves stdout for the command's JSON lines: output of `console.log` and others goes to stderr.
 * @returns The stream for the command
 */
export function reserveStdout({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>) {
  const { isTTY, columns } = stdout;
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  return { write: (text: string) => write(text), isTTY, columns };
}

/**
 * Ends the process once everything is written. Without it, a timer, a server or a socket that the code of a recipe has
 * left open would keep a finished process alive, and `process.exitCode` may be the recipe's. A success whose output was
 * lost ends with 1.
 */
export async function endProcess(
  { stdout, stderr, exit }: Pick<NodeJS.Process, 'stdout' | 'stderr' | 'exit'>,
  exitCode: number,
  lostOutput: () => boolean = () => false,
): Promise<void> {
  await Promise.all([stdout, stderr].map(written));
  exit(exitCode === 0 && lostOutput() ? 1 : exitCode);
}

/** Waits until all that was written has left. The stream's own method may have been replaced. */
const written = (stream: Writable) =>
  new Promise<void>((resolve) => void Writable.prototype.write.call(stream, '', 'utf8', () => resolve()));

/** The process ends this long after an interruption, unless protected work runs. */
const PATIENCE_MS = 4500;

const IMPATIENT =
  `interrupted; the work in progress did not stop within ${PATIENCE_MS / 1000} s. ` +
  'Resume a run from its last checkpoint with npx drmas resume <run>\n';

export interface Interruption extends Pick<Host, 'signal' | 'protect'> {
  /** Whether output was lost, for example because it went to a file on a full disk. */
  readonly lostOutput: () => boolean;
}

/**
 * Handles Ctrl-C, termination, a closed terminal, and the end of the npm that started the process. The first one fires
 * the signal, so that the run stops and writes a checkpoint. A second one ends the process. After a timeout the process
 * ends too, with a message; the timeout restarts after protected work, such as writing a checkpoint. A closed pipe
 * (`drmas train math | head`) counts as the first one. A command goes on without a terminal that is gone, since a
 * signal says whether it ends too, and without a file that cannot be written, after a message.
 */
export function interruption(process: NodeJS.Process, write: (text: string) => void = writeError): Interruption {
  const controller = new AbortController();
  let working = 0;
  let overdue = false;
  let lost = false;
  const exit = () => process.exit(INTERRUPTED);
  const wait = () => {
    setTimeout(() => {
      overdue = working > 0;
      if (overdue) return;
      write(IMPATIENT);
      exit();
    }, PATIENCE_MS).unref();
  };
  const interrupt = () => {
    if (controller.signal.aborted) exit();
    wait();
    controller.abort(new Error('interrupted'));
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  process.on('SIGHUP', interrupt);
  if (process.env.npm_lifecycle_event !== undefined) whenOrphaned(process, interrupt);
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE' && !controller.signal.aborted) interrupt();
      if (error.code === 'EPIPE' || (error.code === 'EIO' && stream.isTTY) || lost) return;
      lost = true;
      try {
        write(`error: the output cannot be written: ${error.message}\n`);
      } catch {
        // the errors may go to the same disk
      }
    });
  }
  return {
    signal: controller.signal,
    lostOutput: () => lost,
    async protect(work) {
      working++;
      try {
        return await work();
      } finally {
        working--;
        if (overdue && working === 0) {
          overdue = false;
          wait();
        }
      }
    },
  };
}

const ORPHAN_CHECK_MS = 500;

/**
 * Calls a function once the parent process has ended. npm passes a signal to the shell of a script and not to the
 * programs that the shell started, so `kill` of `npm run watch` or `npx drmas serve` would leave the server behind.
 */
function whenOrphaned(process: Pick<NodeJS.Process, 'ppid'>, then: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    then();
  }, ORPHAN_CHECK_MS);
  timer.unref();
}
