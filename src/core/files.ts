/**
 * The file operations that runs and checkpoints need, behind one small interface so that faults can be injected. Paths are
 * strings; errors are those of the implementation (`code` as Node gives it).
 */
export interface Files {
  readText(path: string): Promise<string>;
  /** Bytes in a file. */
  size(path: string): Promise<number>;
  /** `length` bytes from byte `from` on, in a buffer of their own; fewer only where the file ends. */
  readBytes(path: string, from: number, length: number): Promise<Uint8Array>;
  /** Writes and flushes to disk; what comes in parts is written part by part. */
  write(path: string, content: string | Uint8Array | Iterable<Uint8Array>): Promise<void>;
  append(path: string, content: string): void;
  makeDirectory(path: string): Promise<void>;
  /** Renames over nothing: the target must not exist. */
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Names in a directory, sorted; empty when it does not exist. */
  list(path: string): Promise<string[]>;
  exists(path: string): Promise<boolean>;
  truncate(path: string, bytes: number): Promise<void>;
}
