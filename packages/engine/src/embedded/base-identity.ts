/**
 * The identity of an adapter's base: the hash of the base's weights (`weightsHash`), in a file beside the adapter. It
 * prevents that the adapter is loaded on other weights unnoticed.
 */
import { z } from 'zod';
import { CheckpointError, messageOf } from '../errors.js';
import type { Files } from '../host.js';
import { isThere } from '../model/formats/validated-json.js';

export const IDENTITY = 'drmas_adapter.json';
const identity = z.object({ base: z.object({ sha256: z.string() }) });

export async function writeIdentity(files: Files, directory: string, sha256: string): Promise<void> {
  await files.write(`${directory}/${IDENTITY}`, `${JSON.stringify({ base: { sha256 } }, null, 2)}\n`);
}

/**
 * Whether an adapter's directory names these weights as its base; false if it names no base.
 * @param hash Computes the hash of the weights, which takes a while. It is called only if the directory names a base
 * @throws CheckpointError when it names other weights
 */
export async function saysIdentity(
  files: Files,
  directory: string,
  hash: () => Promise<string>,
  base: string,
): Promise<boolean> {
  const file = `${directory}/${IDENTITY}`;
  if (!(await isThere(files, file))) return false;
  let recorded: z.output<typeof identity>;
  try {
    recorded = identity.parse(JSON.parse(await files.readText(file)));
  } catch (error) {
    throw new CheckpointError(`${file} cannot be used: ${messageOf(error)}`);
  }
  if (recorded.base.sha256 === (await hash())) return true;
  throw new CheckpointError(
    `${directory}: the adapter was trained on other weights than those of ${base} (${IDENTITY} holds their hash; without that file nothing is compared)`,
  );
}
