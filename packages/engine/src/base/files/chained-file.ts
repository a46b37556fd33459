import { constants } from 'node:buffer';
import { createHash, type Hash } from 'node:crypto';
import { RunError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { piecesOf } from './digests.js';

/** A position after a line. The lines before it belong to a checkpoint, the lines after it do not. */
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
 * A file of lines that only grows. Its position includes the digest of all lines before it, so that a later change of
 * any of them is noticed.
 */
export class ChainedFile {
  readonly path: string;
  readonly #files: Files;
  readonly #hash: Hash;
  #bytes: number;
  #lines: number;
  #flushing: Promise<void> | undefined;
  /** Lines were appended after the last flush began. */
  #unflushed = false;
  #failure: { readonly error: unknown } | undefined;

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

  /**
   * Appends one line, whole or not at all, and begins to flush it.
   * @throws also the error of an earlier flush: it is not known which lines are on disk then
   */
  append(text: string): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    const line = `${text}\n`;
    this.#files.append(this.path, line, this.#bytes);
    this.#moveBehind(line);
    this.#unflushed = true;
    this.#flushing ??= this.#flush();
  }

  /** Waits until all lines are on disk. @throws the error of a flush */
  async flushed(): Promise<void> {
    await this.#flushing;
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #flush(): Promise<void> {
    try {
      await undefined; // lines that are appended together are flushed together
      while (this.#unflushed) {
        this.#unflushed = false;
        await this.#files.flush(this.path);
      }
    } catch (error) {
      this.#failure = { error };
    }
    this.#flushing = undefined;
  }

  #moveBehind(line: string): void {
    const bytes = utf8.encode(line);
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
    this.#lines++;
  }

  /** Adds the last line in one atomic step. If the process is killed, no part of the line stays in the file. */
  async end(text: string): Promise<void> {
    const line = `${text}\n`;
    const before = this.#bytes === 0 ? '' : await this.#files.readText(this.path);
    await this.#files.replace(this.path, before + line);
    this.#moveBehind(line);
  }

  /** Removes the lines after the position. */
  async cut(): Promise<void> {
    if (await this.#files.exists(this.path)) await this.#files.truncate(this.path, this.#bytes);
  }

  /**
   * Opens a file at a position. After `cut`, new lines follow that position. This call changes nothing.
   * @throws RunError when the part before the position was changed, or does not end with a line
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

/** The pieces of a line that spans pieces of a file. It holds no more than fits into a text. */
export class UnfinishedLine {
  readonly #pieces: Uint8Array[] = [];
  #length = 0;

  /** @param tooLong The error for a line that no text can hold, before all of it is in memory */
  push(piece: Uint8Array, tooLong: (problem: string) => Error): void {
    this.#length += piece.length;
    if (this.#length > constants.MAX_STRING_LENGTH)
      throw tooLong(`a line is longer than ${Math.floor(constants.MAX_STRING_LENGTH / 1e6)} MB`);
    this.#pieces.push(piece);
  }

  /** Returns the whole line; the next one begins. */
  take(): Buffer {
    this.#length = 0;
    return Buffer.concat(this.#pieces.splice(0));
  }
}

/**
 * The complete lines of a file, in order, one in memory at a time. Text after the last newline is left out.
 * @throws RunError for a line that is longer than the longest text
 */
export async function* linesOf(files: Files, path: string): AsyncGenerator<string> {
  const unfinished = new UnfinishedLine();
  let line = 1;
  const tooLong = (problem: string) => new RunError(`${path}:${line}: ${problem}`);
  for await (const piece of piecesOf(files, path, await files.size(path))) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      unfinished.push(piece.subarray(start, end), tooLong);
      yield unfinished.take().toString('utf8');
      line++;
      start = end + 1;
    }
    if (start < piece.length) unfinished.push(piece.subarray(start), tooLong);
  }
}
