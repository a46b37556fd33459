import { dirname } from 'node:path';
import { filesBelow } from '../../base/disk.js';
import { CheckpointError, DrmasError, messageOf } from '../../base/errors.js';
import { type Files, joinPath } from '../../base/host.js';
import { moveFile, removeStale, TEMPORARY, temporaryName } from '../../base/platform.js';

/** The beginning of the temporary directories' names, without the mark of all temporary names. */
const SAVED = 'drmas-save';

/**
 * Makes a directory and writes a model into it. `write` fills a temporary directory inside it, on the same disk. Only
 * complete files take the places of earlier ones, the weights last.
 * @throws CheckpointError if the directory cannot be made or written; an earlier model in it is then as before
 */
export async function writingInto(
  files: Files,
  directory: string,
  write: (temporary: string) => Promise<void>,
): Promise<void> {
  try {
    await files.makeDirectory(directory);
    await removeStale(files, directory, `${TEMPORARY}${SAVED}-`);
    const temporary = joinPath(directory, temporaryName(SAVED));
    await files.makeDirectory(temporary);
    try {
      await write(temporary);
      for (const file of weightsLast(await filesBelow(files, temporary))) {
        const place = joinPath(directory, file);
        await files.makeDirectory(dirname(place));
        await moveFile(joinPath(temporary, file), place);
      }
    } finally {
      await files.remove(temporary);
    }
  } catch (error) {
    if (error instanceof DrmasError) throw error;
    throw new CheckpointError(`${directory}: cannot be written: ${messageOf(error)}`);
  }
}

function weightsLast(paths: readonly string[]): string[] {
  const isWeights = (path: string) => path.endsWith('model.safetensors');
  return [...paths.filter((path) => !isWeights(path)), ...paths.filter(isWeights)];
}
