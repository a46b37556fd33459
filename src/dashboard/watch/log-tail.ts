import { constants } from 'node:buffer';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { LogError } from '@drmas/engine/errors';
import { codeOf } from '@drmas/engine/platform';

/** The most bytes of one read. */
const PIECE = 1 << 18;
/** The number of bytes before the position that must be unchanged; otherwise the log is a different one. */
const REMEMBERED = 64;
const NEWLINE = 10;

export interface Growth {
  /** Whether the file is shorter or another one than before: the lines that were read so far are invalid. */
  readonly rewound: boolean;
  /** Complete lines, without their line feeds. */
  readonly lines: readonly string[];
  readonly more: boolean;
}

const NOTHING: Growth = { rewound: false, lines: [], more: false };

/**
 * Follows a file of lines that another process appends to, and reads it piece by piece. An incomplete last line is read
 * later. Each read opens the file; the file is never locked.
 */
export class LogTail {
  readonly #path: string;
  readonly #longest: number;
  #offset = 0;
  /** The lines before the position. */
  #lines = 0;
  /** The bytes right before the position. */
  #before = Buffer.alloc(0);
  /** Size, time and inode of a file that is read to its end. */
  #version = '';

  /** @param longest The most bytes of a line. Default: what a text can hold */
  constructor(path: string, longest = constants.MAX_STRING_LENGTH) {
    this.#path = path;
    this.#longest = longest;
  }

  /**
   * Reads the lines that were appended since the last read; nothing if the file does not exist yet, or is a pipe.
   * @throws LogError with file and line for a line that is longer than the longest
   */
  async read(): Promise<Growth> {
    const state = await stat(this.#path).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    });
    if (state?.isFile() !== true) return this.#offset === 0 ? NOTHING : this.#restart();
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
    this.#lines = 0;
    this.#before = Buffer.alloc(0);
    this.#version = '';
    return { rewound: true, lines: [], more: true };
  }

  async #readOn(file: FileHandle, size: number): Promise<Growth> {
    // A line may be longer than one read: the next read is twice as long, and so on.
    for (let length = Math.min(PIECE, size - this.#offset); length > 0; ) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, this.#offset);
      const read = buffer.subarray(0, bytesRead);
      const end = read.lastIndexOf(NEWLINE) + 1;
      if (end > 0) {
        const whole = read.subarray(0, end);
        this.#offset += end;
        this.#before = Buffer.from(Buffer.concat([this.#before, whole]).subarray(-REMEMBERED));
        const lines = whole.toString('utf8').split('\n').slice(0, -1);
        this.#lines += lines.length;
        return { rewound: false, lines, more: this.#offset < size };
      }
      if (length > this.#longest) throw new LogError('a line is too long', { file: this.#path, line: this.#lines + 1 });
      if (bytesRead < length || length === size - this.#offset) return NOTHING;
      length = Math.min(2 * length, size - this.#offset);
    }
    return NOTHING;
  }
}
