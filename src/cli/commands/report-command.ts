import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { lastWritten, RUNS } from '../../report/find-runs.js';
import { DEFAULT_EPISODE_BYTES, writeReport } from '../../report/report.js';
import { readAblation } from '../../store/ablation-record.js';
import { defineCommand, severalArguments } from '../define-command.js';
import { integer, text } from '../flags.js';

export const report = defineCommand({
  name: 'report',
  description: 'write one HTML page about runs: curves, spikes, tables, every kept episode',
  details:
    'writes the pages of the dashboard about some runs, or an ablation, into one HTML file: curves by agent, spikes, kept episodes turn by turn; opens without a network',
  arguments: [
    severalArguments(
      'run',
      `directories of runs or ablations; several runs are laid over one another (default: the last one in ${RUNS})`,
    ),
  ],
  flags: {
    to: text('file', "where to (default: report.html in the run's directory; about several runs, here)"),
    megabytes: integer(1, 'about how much room episodes may take; a sample where they do not fit (default: 3)'),
  },
  examples: [
    'drmas report',
    'drmas report runs/first',
    'drmas report runs/drmas runs/grpo --to compare.html',
    'drmas report runs/repair-ablation',
  ],
  async run(context, [named], flags) {
    const runs = named.length > 0 ? named : [await lastWritten(RUNS)];
    const to = flags.to ?? (runs.length === 1 ? join(runs[0] ?? '', 'report.html') : 'report.html');
    await writeReport(runs, {
      to,
      episodeBytes: flags.megabytes === undefined ? DEFAULT_EPISODE_BYTES : flags.megabytes * 1e6,
    });
    const { size } = await stat(to);
    context.stdout.write(`${to}  (${(size / 1e6).toFixed(1)} MB, open it in a browser)\n`);
    const [first = ''] = runs;
    const ofOne =
      (await readAblation(first)) === undefined ? `evaluate ${first} --samples 8` : `ablate ${first} --seeds 5`;
    context.stdout.write(`next\n  npx drmas ${runs.length > 1 ? `watch ${dirname(first)}` : ofOne}\n`);
    return 0;
  },
});
