import { dirname } from 'node:path';
import { filesBelow } from '../disk.js';
import { CheckpointError, DrmasError, messageOf } from '../errors.js';
import { type Files, joinPath } from '../host.js';
import { CONFIG, INDEX } from '../model/formats/hugging-face-directory.js';
import { ADAPTER_CONFIG, ADAPTER_WEIGHTS } from '../model/formats/peft.js';
import { DRMAS_TOKENIZER, TEMPLATE } from '../model/formats/tokenizer-files.js';
import { moveFile, removeStale, TEMPORARY, temporaryName } from '../platform.js';
import { IDENTITY } from './base-identity.js';

/** The beginning of the temporary directories' names, without the mark of all temporary names. */
const SAVED = 'drmas-save';

/**
 * Makes a directory and writes a model into it. `write` fills a temporary directory inside it, on the same disk. Only
 * complete files take the places of earlier ones, the weights last. Then files of an earlier model are removed that
 * readers would take for a part of the new one.
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
      const written = weightsLast(await filesBelow(files, temporary));
      for (const file of written) {
        const place = joinPath(directory, file);
        await files.makeDirectory(dirname(place));
        await moveFile(joinPath(temporary, file), place);
      }
      await removeEarlier(files, directory, written);
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

/** An adapter's files, another tokenizer's, and the index of shards: beside a whole model, readers would take them. */
const BESIDE_WHOLE = new Set([ADAPTER_CONFIG, ADAPTER_WEIGHTS, IDENTITY, DRMAS_TOKENIZER, TEMPLATE, INDEX]);
const SHARD = /^model-\d{5}-of-\d{5}\.safetensors$/;

/** An adapter leaves a whole model in its directory as it is: that may be its base. */
async function removeEarlier(files: Files, directory: string, written: readonly string[]): Promise<void> {
  const present = await files.list(directory);
  const whole = written.includes(CONFIG);
  if (!whole && present.includes(CONFIG)) return;
  const isEarlier = (name: string) => (whole ? BESIDE_WHOLE.has(name) || SHARD.test(name) : name === TEMPLATE);
  for (const name of present)
    if (isEarlier(name) && !written.includes(name)) await files.remove(joinPath(directory, name));
}
