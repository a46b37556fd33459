import { dirname, join } from 'node:path';
import { ArgumentError } from '@drmas/engine/errors';
import { commandText, nodeFiles } from '@drmas/engine/platform';
import { RECIPE } from '../../method/store.js';
import { argument, defineCommand, severalArguments } from '../define-command.js';
import {
  allowEndpoint,
  device,
  integer,
  json,
  model,
  repeated,
  set,
  text,
  track,
  withDevice,
  withModel,
} from '../flags.js';
import { type AblationFlags, reportAblation } from '../report-ablation.js';
import { ComparisonReporter } from '../reporter/comparison/comparison-reporter.js';
import { screenOf } from '../reporter/screen.js';

/** The default comparison: rewards normalised for each agent, and over all agents. */
const ESTIMATORS = 'advantage.type=drmas,grpo';

export const compare = defineCommand({
  name: 'compare',
  shortFor: 'drmas ablate <recipe> --vary advantage.type=drmas,grpo --seeds 1',
  description: 'train a recipe with Dr. MAS and with GRPO, side by side: an ablation of one pair',
  details:
    'trains the values of `--vary key=a,b` (default: the estimators drmas and grpo) from the same warm start with the same seed, and shows scores, curves and agents side by side. It is an ablation of one pair: `drmas ablate` on its directory adds pairs and intervals. Given its directory, it resumes an interrupted comparison',
  arguments: [
    argument('recipe', 'name or file; or the directory of a comparison, to resume it'),
    severalArguments('others', 'none: runs that are over are compared by `drmas report <run> <run>`'),
  ],
  flags: {
    vary: repeated('key=value,value', `values of a setting to compare (default: ${ESTIMATORS})`),
    seed: integer(0, 'seed of warm start, sampling and reinforcement (default: 1)'),
    set,
    run: text('directory', 'directory of the comparison (default: runs/<recipe>-ablation-<time>)'),
    parallel: integer(1, 'concurrent runs (default: up to 4 for small models, else 1)'),
    model,
    allowEndpoint,
    device,
    threads: integer(1, 'kernel threads of all runs together (default: all cores)'),
    track,
    json,
  },
  examples: [
    'drmas compare repair',
    'drmas compare my-team.ts --vary advantage.type=drmas,grpo,rloo --seed 2',
    'drmas compare runs/repair-ablation-20260131-094501',
  ],
  async run(context, [source, others], { seed, ...flags }) {
    await refuseRuns([source, ...others]);
    return reportAblation(
      context,
      { command: 'compare', type: 'comparison', completed },
      source,
      { ...withModel(withDevice(flags)), ...(seed === undefined ? {} : { firstSeed: seed }) },
      new ComparisonReporter(screenOf(context.stdout, context.environment)),
    );
  },
});

/** @throws ArgumentError with the command that compares runs, if a source is a run; if there are several sources */
async function refuseRuns(sources: readonly [string, ...string[]]): Promise<void> {
  const isRun = await Promise.all(sources.map((source) => nodeFiles.exists(join(source, RECIPE))));
  const [first] = sources;
  if (isRun.includes(true)) {
    const runs = sources.length > 1 ? sources : [first, '<another run>'];
    const [page, live] = [
      ['report', ...runs],
      ['watch', dirname(first)],
    ].map((words) => commandText(['npx', 'drmas', ...words]));
    throw new ArgumentError(
      `${first} is a run, and compare trains: it takes a recipe. To compare runs that are there: ${page} writes one page about them, and ${live} shows them live`,
    );
  }
  if (sources.length > 1)
    throw new ArgumentError(
      `compare takes one recipe, got ${sources.join(', ')}; its variants are values of a setting: --vary advantage.type=drmas,grpo`,
    );
}

function completed({ vary, ...flags }: AblationFlags): AblationFlags {
  const compared = vary.length === 0 ? { vary: [ESTIMATORS], baseline: 'grpo' } : { vary };
  return { ...flags, ...compared, seeds: 1 };
}
