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
  write(path: string, content: string | Uint8Array | Iterable<Uint8Array>): Promise<void>;
  append(path: string, content: string): void;
  makeDirectory(path: string): Promise<void>;
  /** Renames a file or directory. The target must not exist. */
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** The names in a directory, sorted; empty when the directory does not exist. */
  list(path: string): Promise<string[]>;
  exists(path: string): Promise<boolean>;
  truncate(path: string, bytes: number): Promise<void>;
}
