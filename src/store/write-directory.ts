import type { Files } from '../core/files.js';

/** The beginning of temporary names; directories with such names remain only from a run that was killed. */
export const TEMPORARY = '.tmp-';

/**
 * Makes a directory appear complete or not at all: `fill` writes into a temporary one beside it, which is then flushed
 * and renamed. Nothing is left behind when `fill` fails.
 */
export async function writeDirectory(
  files: Files,
  parent: string,
  name: string,
  fill: (directory: string) => Promise<void>,
): Promise<string> {
  const unique = Math.floor(Math.random() * 2 ** 32).toString(36); // two processes may write the same name at once
  const temporary = `${parent}/${TEMPORARY}${name}-${unique}`;
  const target = `${parent}/${name}`;
  await files.makeDirectory(temporary);
  try {
    await fill(temporary);
    await files.rename(temporary, target);
  } catch (error) {
    await files.remove(temporary);
    throw error;
  }
  return target;
}
