import { type FileHandle, open, stat } from 'node:fs/promises';
import { codeOf } from '../platform/node-files.js';

/** The most bytes that are read at once. */
const PIECE = 1 << 18;
/** The bytes before the position that must still be there for the log to be the same one. */
const REMEMBERED = 64;
const NEWLINE = 10;

/** What a reading of a growing file gave. */
export interface Growth {
  /** Whether the file is not the one that was read before, but shorter or another: what was read so far is void. */
  readonly rewound: boolean;
  /** Whole lines, without those line feeds that end them. */
  readonly lines: readonly string[];
  /** Whether more whole lines are there already. */
  readonly more: boolean;
}

const NOTHING: Growth = { rewound: false, lines: [], more: false };

/**
 * Follows a file of lines that another process appends to, from one position to the next, with a piece of it in memory
 * at a time. A last line without its line feed is left for later. The file is opened for each reading and never locked.
 */
export class LogTail {
  readonly #path: string;
  #offset = 0;
  /** The bytes right before the position. */
  #before = Buffer.alloc(0);
  /** Size, time and inode of a file that is read to its end. */
  #version = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** Reads what was appended since; nothing where the file is not there yet. */
  async read(): Promise<Growth> {
    const state = await stat(this.#path).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    });
    if (state === undefined) return this.#offset === 0 ? NOTHING : this.#restart();
    const version = `${state.size} ${state.mtimeMs} ${state.ino}`;
    if (version === this.#version) return NOTHING;
    const file = await open(this.#path, 'r');
    try {
      const { size } = await file.stat();
      if (size < this.#offset || !(await this.#isSame(file))) return this.#restart();
      if (size === this.#offset) this.#version = version;
      return await this.#readOn(file, size);
    } finally {
      await file.close();
    }
  }

  async #isSame(file: FileHandle): Promise<boolean> {
    const { length } = this.#before;
    if (length === 0) return true;
    const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, this.#offset - length);
    return bytesRead === length && buffer.equals(this.#before);
  }

  #restart(): Growth {
    this.#offset = 0;
    this.#before = Buffer.alloc(0);
    this.#version = '';
    return { rewound: true, lines: [], more: true };
  }

  async #readOn(file: FileHandle, size: number): Promise<Growth> {
    // A line may be longer than a piece: then twice as much is read, and so on.
    for (let length = Math.min(PIECE, size - this.#offset); length > 0; ) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, this.#offset);
      const read = buffer.subarray(0, bytesRead);
      const end = read.lastIndexOf(NEWLINE) + 1;
      if (end > 0) {
        const whole = read.subarray(0, end);
        this.#offset += end;
        this.#before = Buffer.from(Buffer.concat([this.#before, whole]).subarray(-REMEMBERED));
        const lines = whole.toString('utf8').split('\n').slice(0, -1);
        return { rewound: false, lines, more: this.#offset < size };
      }
      if (bytesRead < length || length === size - this.#offset) return NOTHING;
      length = Math.min(2 * length, size - this.#offset);
    }
    return NOTHING;
  }
}
