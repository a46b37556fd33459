/**
 * Which weights an adapter was trained on: their hash (`weightsHash`), kept beside it, so that it is not put on others
 * unnoticed.
 */
import { z } from 'zod';
import { CheckpointError, messageOf } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import { isThere } from '../../model/formats/validated-json.js';

const FILE = 'drmas_adapter.json';
const identity = z.object({ base: z.object({ sha256: z.string() }) });

export async function writeIdentity(files: Files, directory: string, sha256: string): Promise<void> {
  await files.write(`${directory}/${FILE}`, `${JSON.stringify({ base: { sha256 } }, null, 2)}\n`);
}

/**
 * Whether an adapter's directory says that it was trained on these weights; false where it says nothing.
 * @throws CheckpointError when it was trained on others
 */
export async function saysIdentity(files: Files, directory: string, sha256: string, base: string): Promise<boolean> {
  const file = `${directory}/${FILE}`;
  if (!(await isThere(files, file))) return false;
  let recorded: z.output<typeof identity>;
  try {
    recorded = identity.parse(JSON.parse(await files.readText(file)));
  } catch (error) {
    throw new CheckpointError(`${file} cannot be used: ${messageOf(error)}`);
  }
  if (recorded.base.sha256 === sha256) return true;
  throw new CheckpointError(
    `${directory}: the adapter was trained on other weights than those of ${base} (${FILE} holds their hash; without that file nothing is compared)`,
  );
}
