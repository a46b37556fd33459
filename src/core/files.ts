/**
 * The file operations that runs and checkpoints need, behind one small interface so that tests can inject faults. Paths
 * are strings; errors are those of the implementation, with `code` as in Node.
 */
export interface Files {
  readText(path: string): Promise<string>;
  /** The size of a file in bytes. */
  size(path: string): Promise<number>;
  /** Reads `length` bytes from byte `from` on into a new buffer; fewer only where the file ends. */
  readBytes(path: string, from: number, length: number): Promise<Uint8Array>;
  /** Writes the content, one part after another where it comes in parts, and flushes it to disk. */
  write(path: string, content: string | Uint8Array | Iterable<string | Uint8Array>): Promise<void>;
  /**
   * Appends to a file that has `at` bytes, whole or not at all, and flushes it: what a full disk takes of a line is cut
   * off again. A file of 0 bytes need not be there. @throws when the file has another size
   */
  append(path: string, content: string, at: number): void;
  /** Writes a file that is there as it was or as it shall be, at every moment. */
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
  /** Locks a file, which is created where it is not there, against every other process and every other caller. */
  lock(path: string, note: string): Promise<FileLock>;
}

/** What became of an attempt to lock a file. */
export type FileLock =
  | { readonly type: 'held'; readonly release: () => Promise<void> }
  /** `note` is what the holder wrote into the file. */
  | { readonly type: 'taken'; readonly note: string }
  /** The system or the file system has no locks. */
  | { readonly type: 'unsupported'; readonly reason: string };

/** Directories by name in a place that other machines see too; each is there whole or not at all. */
export interface SharedDirectories {
  /** Writes the files of a directory to `into`; false where there is none of that name. */
  fetch(name: string, into: string): Promise<boolean>;
  publish(name: string, from: string): Promise<void>;
}
