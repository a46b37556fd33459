import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_EPISODE_BYTES, writeReport } from '../../report/report.js';
import type { CommandContext } from '../command-context.js';

export interface ReportFlags {
  readonly to?: string;
  readonly megabytes?: number;
}

/** `drmas report <run>...`: one HTML page, in the run's directory or, about several, in the working directory. */
export async function reportCommand(
  context: CommandContext,
  runs: readonly string[],
  flags: ReportFlags,
): Promise<number> {
  const to = flags.to ?? (runs.length === 1 ? join(runs[0] ?? '', 'report.html') : 'report.html');
  await writeReport(runs, {
    to,
    episodeBytes: flags.megabytes === undefined ? DEFAULT_EPISODE_BYTES : flags.megabytes * 1e6,
  });
  const { size } = await stat(to);
  context.stdout.write(`${to}  (${(size / 1e6).toFixed(1)} MB, open it in a browser)\n`);
  return 0;
}
