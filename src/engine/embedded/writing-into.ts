import { CheckpointError, DrmasError, messageOf } from '../../base/errors.js';
import type { Files } from '../../base/host.js';

/**
 * Makes a directory and writes a model into it.
 * @throws CheckpointError if the directory cannot be made or written
 */
export async function writingInto(files: Files, directory: string, write: () => Promise<void>): Promise<void> {
  try {
    await files.makeDirectory(directory);
    await write();
  } catch (error) {
    if (error instanceof DrmasError) throw error;
    throw new CheckpointError(`${directory}: cannot be written: ${messageOf(error)}`);
  }
}
