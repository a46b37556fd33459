import { basename, resolve } from 'node:path';
import { messageOf, RunError } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import { readAblation } from '../../method/store.js';
import { type ListedAblation, TextPool } from '../../runs/analysis.js';
import { type FoundRun, findRuns, listedAblation } from './find-runs.js';
import { PAGE_START, renderPage } from './page.js';
import { type ReportedRun, readRun } from './run-data.js';

/** The default for the bytes of episodes on a page, about. */
export const DEFAULT_EPISODE_BYTES = 3e6;

/**
 * Writes one self-contained HTML page about one or more runs. The directory of an ablation stands for its runs. The
 * page has the same views as the dashboard, and contains their data.
 * @param options.to The path of the page; an earlier report there is replaced once the new one is written whole
 * @param options.episodeBytes The approximate size of the episodes of all runs together
 * @returns One line for each run whose files differ from their digests
 * @throws RunError when a directory is neither a run nor an ablation, or `to` cannot be written or is not a report;
 * LogError with the line of a damaged episode file
 */
export async function writeReport(
  paths: readonly string[],
  { to, episodeBytes = DEFAULT_EPISODE_BYTES }: { readonly to: string; readonly episodeBytes?: number },
): Promise<readonly string[]> {
  await refuseOthersFile(to);
  const { runs, ablations } = await runsOf(paths);
  const pool = new TextPool();
  const reported: (ReportedRun & { readonly run: FoundRun })[] = [];
  for (const run of runs) reported.push({ run, ...(await readRun(run, episodeBytes / runs.length, pool)) });
  const listed = await Promise.all(
    [...ablations].map(async ([name, path]): Promise<ListedAblation[]> => {
      const record = await readAblation(path);
      const members = reported.flatMap(({ run, record }) =>
        run.ablation === name ? [{ name: run.name, record }] : [],
      );
      return record === undefined ? [] : [listedAblation(name, record, members)];
    }),
  );
  const page = await renderPage({
    folder: runs.map(({ name }) => name).join(', '),
    ablations: listed.flat(),
    runs: reported.map(({ embedded }) => embedded),
    texts: pool.texts,
  });
  await nodeFiles.replace(to, page).catch((error: unknown) => {
    throw new RunError(`cannot write the report: ${messageOf(error)}`);
  });
  return reported.flatMap(({ changed }) => changed ?? []);
}

/** The runs of the directories, with the runs of ablations. If two runs have the same name, a number is appended. */
async function runsOf(paths: readonly string[]) {
  const runs: FoundRun[] = [];
  const ablations = new Map<string, string>();
  for (const path of paths) {
    const isAblation = (await readAblation(path)) !== undefined;
    const inside = isAblation ? await findRuns(path) : { runs: [{ path, name: basename(resolve(path)) }], ablations };
    for (const [name, directory] of inside.ablations) ablations.set(name, directory);
    for (const run of inside.runs) {
      const same = runs.filter(({ name }) => name.replace(/ \(\d+\)$/, '') === run.name).length;
      runs.push(same === 0 ? run : { ...run, name: `${run.name} (${same + 1})` });
    }
  }
  return { runs, ablations };
}

/** @throws RunError when the file exists and is not a report, and for a device or a pipe, which cannot be replaced */
async function refuseOthersFile(path: string): Promise<void> {
  const begin = await beginOf(path).catch((error: unknown) => {
    throw new RunError(`cannot write ${path}: ${messageOf(error)}`);
  });
  if (begin !== '' && begin !== PAGE_START)
    throw new RunError(`${path} exists and is not a report; choose another file with --to`);
}

/** The first characters of a file, as many as `PAGE_START` has; none if there is no file. */
async function beginOf(path: string): Promise<string> {
  if (!(await nodeFiles.exists(path)) || (await nodeFiles.size(path)) === 0) return '';
  return Buffer.from(await nodeFiles.readBytes(path, 0, PAGE_START.length)).toString('latin1');
}
