/** A disk in memory, on which every call takes time and a chosen one ends the process or fails half way. */
import { dirname } from 'node:path';
import type { FileLock, Files } from '@drmas/engine/host';
import type { RandomStream } from '@drmas/engine/math';
import { takesTime, timeOfDay } from '../support/time-and-chance.js';

/** The events at those calls of a process that change the disk, counted from 1. */
export interface DiskFault {
  readonly at: number;
  /** `kill` ends the process in the middle of the call; `full` fails the call; `lasting` that and all later ones. */
  readonly kind: 'kill' | 'full' | 'lasting';
}

/** The content of the disk, which outlives processes. */
export class SimulatedDisk {
  readonly files = new Map<string, Buffer>();
  readonly directories = new Set<string>();
  /** The process that holds the lock of a file. */
  readonly locks = new Map<string, { readonly by: DiskOfProcess; readonly note: string }>();

  /** Files and directories directly below a path. */
  names(path: string): string[] {
    const below = [...this.files.keys(), ...this.directories].filter((name) => name.startsWith(`${path}/`));
    return [...new Set(below.map((name) => name.slice(path.length + 1).split('/', 1)[0] as string))].sort();
  }

  exists(path: string): boolean {
    return this.files.has(path) || this.directories.has(path);
  }
}

const failure = (code: string, path: string) => Object.assign(new Error(`${code}: ${path}`), { code });
const never = new Promise<never>(() => {});

/** The disk as one process sees it, until the process ends. */
export class DiskOfProcess implements Files {
  readonly #disk: SimulatedDisk;
  readonly #random: RandomStream;
  readonly #fault: DiskFault | undefined;
  #calls = 0;
  #dead = false;

  constructor(disk: SimulatedDisk, random: RandomStream, fault?: DiskFault) {
    this.#disk = disk;
    this.#random = random;
    this.#fault = fault;
  }

  /** Whether the process has ended. Nothing that it still does reaches the disk. */
  get dead(): boolean {
    return this.#dead;
  }

  get calls(): number {
    return this.#calls;
  }

  /** Ends the process: its locks are free. */
  kill(): void {
    this.#dead = true;
    for (const [path, { by }] of this.#disk.locks) if (by === this) this.#disk.locks.delete(path);
  }

  readText = async (path: string) => (await this.#read(path)).toString();
  size = async (path: string) => (await this.#read(path)).length;
  readBytes = async (path: string, from: number, length: number) =>
    Uint8Array.from((await this.#read(path)).subarray(from, from + length));
  list = (path: string) => this.#look(() => this.#disk.names(path));
  exists = (path: string) => this.#look(() => this.#disk.exists(path));
  modified = (_path: string) => this.#look(() => timeOfDay()); // no world is a day old

  write(path: string, content: string | Uint8Array | Iterable<string | Uint8Array>): Promise<void> {
    const parts = typeof content === 'string' || content instanceof Uint8Array ? [content] : [...content];
    const bytes = Buffer.concat(parts.map((part) => Buffer.from(part)));
    const put = (share: number) => {
      this.#requireDirectory(path);
      this.#disk.files.set(path, bytes.subarray(0, Math.floor(bytes.length * share)));
    };
    return this.#change(path, () => put(1), put);
  }

  append(path: string, content: string, at: number): void {
    if (this.#dead) throw failure('EIO', path);
    const before = this.#disk.files.get(path) ?? Buffer.alloc(0);
    if (before.length !== at) throw new Error(`${path} has ${before.length} bytes, expected ${at}`);
    this.#requireDirectory(path);
    const kind = this.#faultNow();
    const bytes = Buffer.from(content);
    if (kind === undefined) {
      this.#disk.files.set(path, Buffer.concat([before, bytes]));
      return;
    }
    if (kind === 'kill') {
      this.#disk.files.set(path, Buffer.concat([before, bytes.subarray(0, this.#random.integer(0, bytes.length))]));
      this.kill();
    }
    throw failure('ENOSPC', path);
  }

  /** A process that has ended waits for ever. What is appended is on the disk. */
  flush = (_path: string): Promise<void> => (this.#dead ? never : Promise.resolve());

  replace(path: string, content: string): Promise<void> {
    return this.#change(path, () => {
      this.#requireDirectory(path);
      this.#disk.files.set(path, Buffer.from(content));
    });
  }

  makeDirectory(path: string): Promise<void> {
    const make = (): void => {
      for (let each = path; each !== '/' && each !== '.'; each = dirname(each)) this.#disk.directories.add(each);
    };
    return this.#disk.directories.has(path) ? this.#look(make) : this.#change(path, make);
  }

  rename(from: string, to: string): Promise<void> {
    return this.#change(from, () => {
      if (this.#disk.exists(to)) throw failure('EEXIST', to);
      if (!this.#disk.exists(from)) throw failure('ENOENT', from);
      const moved = (path: string) => to + path.slice(from.length);
      const inside = (path: string) => path === from || path.startsWith(`${from}/`);
      for (const [path, bytes] of [...this.#disk.files].filter(([path]) => inside(path))) {
        this.#disk.files.delete(path);
        this.#disk.files.set(moved(path), bytes);
      }
      for (const path of [...this.#disk.directories].filter(inside)) {
        this.#disk.directories.delete(path);
        this.#disk.directories.add(moved(path));
      }
    });
  }

  /** Removes a file, or a directory one entry after another, so that an end in between leaves some of them. */
  remove(path: string): Promise<void> {
    const entries = () => [...this.#disk.files.keys(), ...this.#disk.directories].filter((name) => inside(name));
    const inside = (name: string) => name === path || name.startsWith(`${path}/`);
    const removeShare = (share: number) => {
      const all = entries();
      for (const name of all.slice(0, Math.floor(all.length * share))) {
        this.#disk.files.delete(name);
        if (share === 1) this.#disk.directories.delete(name);
      }
    };
    return entries().length === 0 ? this.#look(() => {}) : this.#change(path, () => removeShare(1), removeShare);
  }

  truncate(path: string, bytes: number): Promise<void> {
    return this.#change(path, () => {
      const before = this.#disk.files.get(path);
      if (before === undefined) throw failure('ENOENT', path);
      this.#disk.files.set(path, before.subarray(0, bytes));
    });
  }

  lock(path: string, note: string): Promise<FileLock> {
    return this.#look((): FileLock => {
      const holder = this.#disk.locks.get(path);
      if (holder !== undefined) return { type: 'taken', note: holder.note };
      this.#requireDirectory(path);
      this.#disk.files.set(path, Buffer.from(note));
      this.#disk.locks.set(path, { by: this, note });
      const release = () => this.#look(() => void this.#disk.locks.delete(path));
      return { type: 'held', release };
    });
  }

  #requireDirectory(path: string): void {
    if (!this.#disk.directories.has(dirname(path))) throw failure('ENOENT', path);
  }

  #read(path: string): Promise<Buffer> {
    return this.#look(() => {
      const bytes = this.#disk.files.get(path);
      if (bytes === undefined) throw failure('ENOENT', path);
      return bytes;
    });
  }

  /** A call that changes nothing. It takes time too, so that others come between. */
  async #look<T>(act: () => T): Promise<T> {
    await this.#time();
    return act();
  }

  /** A call that changes the disk. `half` does a part of it, which remains if the call fails or the process ends. */
  async #change(path: string, act: () => void, half: (share: number) => void = () => {}): Promise<void> {
    await this.#time();
    const kind = this.#faultNow();
    if (kind === undefined) act();
    else {
      half(this.#random.uniform());
      if (kind === 'kill') {
        this.kill();
        return never;
      }
      throw failure('ENOSPC', path);
    }
    await this.#time();
  }

  #faultNow(): DiskFault['kind'] | undefined {
    const number = ++this.#calls;
    if (this.#fault === undefined) return undefined;
    const { at, kind } = this.#fault;
    return number === at || (kind === 'lasting' && number > at) ? kind : undefined;
  }

  async #time(): Promise<void> {
    if (this.#dead) return never;
    if (this.#random.chance(0.5)) await takesTime(this.#random.uniform());
    if (this.#dead) return never;
  }
}
