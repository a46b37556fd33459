import { open, writeFile } from 'node:fs/promises';
import { messageOf, RunError } from '../core/errors.js';
import { codeOf } from '../platform/node-files.js';
import { PAGE_START, renderPage } from './page/page.js';
import { readRun } from './run-data.js';

/** The bytes of a page that are episodes by default, about. */
export const DEFAULT_EPISODE_BYTES = 8e6;

/**
 * Writes one self-contained HTML page about one or more runs.
 * @param options.to Its path; an earlier report there is replaced
 * @param options.episodeBytes About how much room the episodes of all runs together may take
 * @throws RunError when a directory is not a run, or `to` cannot be written or holds something else; LogError naming
 *   the line of a damaged episode file
 */
export async function writeReport(
  paths: readonly string[],
  { to, episodeBytes = DEFAULT_EPISODE_BYTES }: { readonly to: string; readonly episodeBytes?: number },
): Promise<void> {
  await refuseOthersFile(to);
  const runs = [];
  for (const path of paths) runs.push(await readRun(path, episodeBytes / paths.length));
  await writeFile(to, renderPage(runs)).catch((error: unknown) => {
    throw new RunError(`the report cannot be written: ${messageOf(error)}`);
  });
}

/** @throws RunError when the file exists and is no report */
async function refuseOthersFile(path: string): Promise<void> {
  const file = await open(path, 'r').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new RunError(`${path} cannot be written: ${messageOf(error)}`);
  });
  if (file === undefined) return;
  try {
    const begin = Buffer.alloc(PAGE_START.length);
    const { bytesRead } = await file.read(begin, 0, begin.length, 0);
    if (bytesRead > 0 && begin.toString('latin1') !== PAGE_START)
      throw new RunError(`${path} exists and is not a report; choose another file with --to`);
  } catch (error) {
    throw error instanceof RunError ? error : new RunError(`${path} cannot be written: ${messageOf(error)}`);
  } finally {
    await file.close();
  }
}
