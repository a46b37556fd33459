/**
 * The file operations that runs and checkpoints need, behind one small interface so that tests can inject faults. Paths
 * are strings. Errors come from the implementation and have `code` as in Node.
 */
export interface Files {
  readText(path: string): Promise<string>;
  /** The size of a file in bytes. */
  size(path: string): Promise<number>;
  /** Reads `length` bytes from byte `from` on into a new buffer. Returns fewer only at the end of the file. */
  readBytes(path: string, from: number, length: number): Promise<Uint8Array>;
  /** Writes the content, part by part if it is iterable, and flushes it to disk. */
  write(path: string, content: string | Uint8Array | Iterable<string | Uint8Array>): Promise<void>;
  /**
   * Appends to a file that has `at` bytes, whole or not at all. If the disk is full, the part that was written is cut
   * off again. A file of 0 bytes need not exist. The content outlives this process, and after `flush` the machine.
   * @throws when the file has another size
   */
  append(path: string, content: string, at: number): void;
  /** Flushes a file that was appended to. */
  flush(path: string): Promise<void>;
  /** Replaces a file's content. A crash leaves the old content or the new one, never a mixture. */
  replace(path: string, content: string): Promise<void>;
  makeDirectory(path: string): Promise<void>;
  /** Renames a file or directory. The target must not exist. */
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** The names in a directory, sorted; empty when the directory does not exist. */
  list(path: string): Promise<string[]>;
  exists(path: string): Promise<boolean>;
  /** When a file or directory was last changed, in milliseconds since 1970. */
  modified(path: string): Promise<number>;
  truncate(path: string, bytes: number): Promise<void>;
  /** Locks a file against all other processes and callers. Creates the file if it does not exist. */
  lock(path: string, note: string): Promise<FileLock>;
}

/** The result of an attempt to lock a file. */
export type FileLock =
  | { readonly type: 'held'; readonly release: () => Promise<void> }
  /** `note` is the text that the holder wrote into the file. */
  | { readonly type: 'taken'; readonly note: string }
  /** The system or the file system has no locks. */
  | { readonly type: 'unsupported'; readonly reason: string };

/** Directories by name in a place that other machines see too; each is there whole or not at all. */
export interface SharedDirectories {
  /** Writes the files of a directory to `into`. Returns false if no directory has the name. */
  fetch(name: string, into: string): Promise<boolean>;
  publish(name: string, from: string): Promise<void>;
}

/** Joins the parts of a path with slashes, which all systems understand; slashes at the ends of parts count once. */
export function joinPath(first: string, ...more: readonly string[]): string {
  return more.reduce((path, part) => `${path.replace(/\/+$/, '')}/${part.replace(/^\/+|\/+$/g, '')}`, first);
}
