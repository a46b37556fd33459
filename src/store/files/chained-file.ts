import { createHash, type Hash } from 'node:crypto';
import { RunError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import { piecesOf } from './digests.js';

/** A position behind a line: what lies before it belongs to a checkpoint, what lies after it does not. */
export interface LogCursor {
  readonly bytes: number;
  readonly lines: number;
  /** The SHA-256 of all bytes before the position; versions without digests did not write it. */
  readonly sha256?: string | undefined;
}

const NEWLINE = 10;
const START: LogCursor = { bytes: 0, lines: 0 };
const utf8 = new TextEncoder();

/**
 * A file of lines that only grows. Its position carries the digest of all that was written before, so that a change
 * anywhere in the past is noticed.
 */
export class ChainedFile {
  readonly path: string;
  readonly #files: Files;
  readonly #hash: Hash;
  #bytes: number;
  #lines: number;

  constructor(files: Files, path: string, hash = createHash('sha256'), { bytes, lines } = START) {
    this.#files = files;
    this.path = path;
    this.#hash = hash;
    this.#bytes = bytes;
    this.#lines = lines;
  }

  get cursor(): Required<LogCursor> {
    return { bytes: this.#bytes, lines: this.#lines, sha256: this.#hash.copy().digest('hex') };
  }

  /** Appends one line, whole or not at all. */
  append(text: string): void {
    const line = `${text}\n`;
    this.#files.append(this.path, line, this.#bytes);
    this.#moveBehind(line);
  }

  #moveBehind(line: string): void {
    const bytes = utf8.encode(line);
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
    this.#lines++;
  }

  /** Ends the file with a line, of which a process that is killed meanwhile leaves no part: nobody would cut it off. */
  async end(text: string): Promise<void> {
    const line = `${text}\n`;
    const before = this.#bytes === 0 ? '' : await this.#files.readText(this.path);
    await this.#files.replace(this.path, before + line);
    this.#moveBehind(line);
  }

  /** Removes what lies behind the position. */
  async cut(): Promise<void> {
    if (await this.#files.exists(this.path)) await this.#files.truncate(this.path, this.#bytes);
  }

  /**
   * The file at a position, behind which it goes on once it is cut. Nothing is changed yet.
   * @throws RunError when what lies before the position is not what was written, or does not end with a line
   */
  static async at(files: Files, path: string, cursor: LogCursor = START): Promise<ChainedFile> {
    return new ChainedFile(files, path, await hashOfPast(files, path, cursor), cursor);
  }
}

async function hashOfPast(files: Files, path: string, { bytes, lines, sha256 }: LogCursor): Promise<Hash> {
  const hash = createHash('sha256');
  if (bytes === 0) return hash;
  if (!(await files.exists(path))) throw new RunError(`${path} is missing`);
  const size = await files.size(path);
  if (size < bytes) throw new RunError(`${path} has ${size} bytes, its checkpoint needs ${bytes}`);
  let counted = 0;
  let last: number | undefined;
  for await (const piece of piecesOf(files, path, bytes)) {
    hash.update(piece);
    for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, at + 1)) counted++;
    last = piece.at(-1);
  }
  const changed = (what: string) => new RunError(`${path} was changed since it was written: ${what}`);
  if (last !== NEWLINE) throw changed(`byte ${bytes}, where its checkpoint was made, is not the end of a line`);
  if (counted !== lines) throw changed(`its first ${bytes} bytes have ${counted} lines, its checkpoint says ${lines}`);
  if (sha256 !== undefined && hash.copy().digest('hex') !== sha256)
    throw changed(`the digest of its first ${lines} lines differs`);
  return hash;
}

/** The whole lines of a file, in order, one in memory at a time; what follows the last newline is left out. */
export async function* linesOf(files: Files, path: string): AsyncGenerator<string> {
  const unfinished: Uint8Array[] = []; // the pieces of a line that spans pieces of the file
  for await (const piece of piecesOf(files, path, await files.size(path))) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      unfinished.push(piece.subarray(start, end));
      yield Buffer.concat(unfinished.splice(0)).toString('utf8');
      start = end + 1;
    }
    if (start < piece.length) unfinished.push(piece.subarray(start));
  }
}
