/** Keeps the exit code and the output of a command honest, whatever the code of a recipe does to the process. */
import { writeSync } from 'node:fs';
import { INTERRUPTED } from './command-context.js';

/** The parts of the process that a recipe's code might use. */
type Guarded = Pick<NodeJS.Process, 'on' | 'exitCode'>;

/**
 * Notices an end of the process that is not the command's: `process.exit` in a team's code would pass for success. It
 * is said with its place, and the exit code is 1.
 * @returns a function to call when the command has ended
 */
export function guardExit(process: Guarded, write: (text: string) => void = writeError): () => void {
  let ended = false;
  process.on('exit', (code) => {
    if (ended || code === INTERRUPTED) return;
    const place = (new Error().stack ?? '').split('\n').filter((line) => /^\s+at /.test(line) && !IGNORED.test(line));
    write(`error: the process was ended before its command, with exit code ${code}\n${place.join('\n')}\n`);
    process.exitCode = 1;
  });
  return () => {
    ended = true;
  };
}

const IGNORED = /[( ]node:|[\\/]process-guard\.[jt]s:/;
/** Writes at once, also where the process ends next. */
export const writeError = (text: string) => void writeSync(2, text);

/**
 * Reserves stdout for the command, whose lines a program reads: what `console.log` and others write goes to stderr.
 * @returns the stream for the command
 */
export function reserveStdout({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>) {
  const { isTTY, columns } = stdout;
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  return { write: (text: string) => write(text), isTTY, columns };
}
