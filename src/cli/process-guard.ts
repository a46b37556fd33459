/** Protects the exit code and stdout of a command from the code of a recipe. */
import { writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { INTERRUPTED } from './command-context.js';

/** The parts of the process that a recipe's code might use. */
type Guarded = Pick<NodeJS.Process, 'on' | 'exitCode'>;

/**
 * Reports a `process.exit` in a recipe's code, with its place, and sets the exit code to 1.
 * @returns A function to call when the command has ended
 */
export function guardExit(process: Guarded, write: (text: string) => void = writeError): () => void {
  let ended = false;
  process.on('exit', (code) => {
    if (ended || code === INTERRUPTED) return;
    const place = (new Error().stack ?? '').split('\n').filter((line) => /^\s+at /.test(line) && !IGNORED.test(line));
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
export const writeError = (text: string) => void writeSync(2, text);

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
 * left open would keep a finished process alive, and `process.exitCode` may be the recipe's.
 */
export async function endProcess(
  { stdout, stderr, exit }: Pick<NodeJS.Process, 'stdout' | 'stderr' | 'exit'>,
  exitCode: number,
): Promise<void> {
  await Promise.all([stdout, stderr].map(written));
  exit(exitCode);
}

/** Waits until all that was written has left. The stream's own method may have been replaced. */
const written = (stream: Writable) =>
  new Promise<void>((resolve) => void Writable.prototype.write.call(stream, '', 'utf8', () => resolve()));
