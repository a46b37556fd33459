import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf, TaskError } from '../core/errors.js';

/** The text of a file, without its byte order mark. A relative path starts at the working directory. @throws TaskError */
export async function readTextFile(file: string): Promise<string> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(resolve(file));
  } catch (error) {
    throw new TaskError(`cannot be read (${messageOf(error)})`, { file });
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new TaskError('expected UTF-8 text', { file });
  }
}
