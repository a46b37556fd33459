import { stat } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { ArgumentError } from '@drmas/engine/errors';
import { DEFAULT_EPISODE_BYTES, lastWritten, RUNS, writeReport } from '../../dashboard/report.js';
import { readAblation } from '../../method/store.js';
import { defineCommand, severalArguments } from '../define-command.js';
import { integer, text } from '../flags.js';
import { nextCommands } from '../reporter/text-layout.js';

export const report = defineCommand({
  name: 'report',
  description: 'write one HTML page about runs: curves, tables, episodes',
  details:
    'writes the dashboard of one or several runs, or of an ablation, into one HTML file: curves by agent, spikes, episodes turn by turn. The page needs no network',
  arguments: [
    severalArguments(
      'run',
      `directories of runs or ablations; the page overlays several runs (default: the last run in ${RUNS})`,
    ),
  ],
  flags: {
    to: text(
      'file',
      "file to write (default: report.html in the run's directory; for several runs, in the working directory)",
    ),
    megabytes: integer(
      1,
      'about the size of the episodes on the page; a sample is taken if they do not fit (default: 3)',
    ),
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
    if (!/^(\.html?)?$/i.test(extname(to)))
      throw new ArgumentError(
        `--to: expected a file that ends with .html, got '${to}'; \`--json\` of \`runs\`, \`ablate\` and \`evaluate\` prints numbers`,
      );
    const changed = await writeReport(runs, {
      to,
      episodeBytes: flags.megabytes === undefined ? DEFAULT_EPISODE_BYTES : flags.megabytes * 1e6,
    });
    for (const line of changed) context.stderr.write(`warning: ${line}\n`);
    const { size } = await stat(to);
    context.stdout.write(`${to}  (${(size / 1e6).toFixed(1)} MB, open it in a browser)\n`);
    const [first = ''] = runs;
    const ablation = await readAblation(first);
    // More pairs make the intervals of an ablation narrower.
    const ofOne =
      ablation === undefined
        ? ['evaluate', first, '--samples', '8']
        : ['ablate', first, '--seeds', String(Math.max(6, 2 * ablation.seeds))];
    context.stdout.write(`${nextCommands(runs.length > 1 ? ['watch', dirname(first)] : ofOne).join('\n')}\n`);
    return 0;
  },
});
