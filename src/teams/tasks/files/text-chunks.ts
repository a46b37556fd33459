import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf, TaskError } from '../../../base/errors.js';

const CHUNK_BYTES = 1 << 20;

/**
 * Reads the text of a file piece by piece, without its byte order mark. A relative path starts at the working
 * directory.
 * @throws TaskError naming the file when it cannot be read
 */
export async function* textChunks(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (bytes?: Uint8Array) => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw new TaskError('expected UTF-8 text', { file });
    }
  };
  try {
    for await (const bytes of createReadStream(resolve(file), { highWaterMark: CHUNK_BYTES })) yield decode(bytes);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error)
      throw new TaskError(`cannot be read (${messageOf(error)})`, { file });
    throw error;
  }
  yield decode();
}
