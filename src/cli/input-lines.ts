/** The lines of the standard input: of a person at a terminal, or of a program behind a pipe. */
import { createInterface, type Interface } from 'node:readline';
import { Transform } from 'node:stream';
import { messageOf, RunError } from '@drmas/engine/errors';
import type { Keyboard } from './command-context.js';

/** The bytes of a line beyond which it is taken for no text: no model reads as many. */
const LONGEST = 2 ** 24;

export interface InputLines {
  /** Lets a person edit the lines, and ends the input. */
  readonly editor: Interface;
  /**
   * The lines without the byte order mark that PowerShell and editors of Windows put before the first one. Iterating
   * throws a RunError if the input cannot be read, or if a line of a pipe has more than 16 MiB.
   */
  readonly lines: AsyncGenerator<string, void>;
}

export function inputLines({ input, output }: Keyboard, isTerminal: boolean): InputLines {
  let failure: Error | undefined;
  const bounded = new Transform({ transform: bound() });
  const editor = createInterface(isTerminal ? { input, output, terminal: true } : { input: input.pipe(bounded) });
  for (const stream of [input, bounded])
    stream.on('error', (error) => {
      failure ??= error instanceof RunError ? error : new RunError(`stdin: cannot be read: ${messageOf(error)}`);
      editor.close();
    });
  const lines = async function* () {
    for await (const line of editor) yield line.replace(/^\ufeff/, '');
    if (failure !== undefined) throw failure;
  };
  return { editor, lines: lines() };
}

const isEnd = (byte: number) => byte === 10 || byte === 13;

/** Passes pieces of the input on until a line gets too long. Without a bound, one without an end fills the memory. */
function bound(): (piece: Buffer, encoding: string, done: (error: Error | null, piece?: Buffer) => void) => void {
  let length = 0;
  return (piece, _, done) => {
    const first = piece.findIndex(isEnd);
    const longest = length + (first < 0 ? piece.length : first);
    length = first < 0 ? longest : piece.length - 1 - piece.findLastIndex(isEnd);
    const tooLong = `stdin: a line has more than ${LONGEST / 2 ** 20} MiB: expected lines of text`;
    if (Math.max(longest, length) > LONGEST) done(new RunError(tooLong));
    else done(null, piece);
  };
}
