import type { CommandContext } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { device, integer, json, model, repeated, set, text, track, withDevice } from '../flags.js';
import { type AblationFlags, type AblationView, reportAblation } from '../report-ablation.js';
import { ComparisonReporter } from '../reporter/comparison/comparison-reporter.js';
import { screenOf } from '../reporter/screen.js';
import { nextCommands } from '../reporter/text-layout.js';

/** The default comparison: rewards normalised for each agent, and over all agents. */
const ESTIMATORS = 'advantage.type=drmas,grpo';

/** An ablation of one pair: trains variants with one seed from one warm start and shows them side by side. */
export const compare = defineCommand({
  name: 'compare',
  shortFor: 'drmas ablate <recipe> --vary advantage.type=drmas,grpo --seeds 1',
  description: 'train a recipe with Dr. MAS and with GRPO, side by side: an ablation of one pair',
  details:
    'trains the values of `--vary key=a,b` (default: the estimators drmas and grpo) from the same warm start with the same seed, and shows scores, curves and agents side by side. It is an ablation of one pair: `drmas ablate` on its directory adds pairs and intervals. Given its directory, it resumes an interrupted comparison',
  arguments: [argument('recipe', 'name or file; or the directory of a comparison, to resume it')],
  flags: {
    vary: repeated('key=value,value', `values of a setting to compare (default: ${ESTIMATORS})`),
    seed: integer(0, 'seed of warm start, sampling and reinforcement (default: 1)'),
    set,
    run: text('directory', 'directory of the comparison (default: runs/<recipe>-ablation-<time>)'),
    parallel: integer(1, 'concurrent runs (default: up to 4 for small models, else 1)'),
    model,
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
  run: (context, [source], { seed, ...flags }) =>
    reportAblation(
      context,
      { command: 'compare', type: 'comparison', completed },
      source,
      { ...withDevice(flags), ...(seed === undefined ? {} : { firstSeed: seed }) },
      viewOf(context),
    ),
});

function completed({ vary, ...flags }: AblationFlags): AblationFlags {
  const compared = vary.length === 0 ? { vary: [ESTIMATORS], baseline: 'grpo' } : { vary };
  return { ...flags, ...compared, seeds: 1 };
}

function viewOf({ stdout, environment }: CommandContext): AblationView {
  const reporter = new ComparisonReporter(screenOf(stdout, environment));
  return {
    notify: (message) => reporter.notify(message),
    onStart: (plan) => reporter.start(plan),
    onBegin: (run, before) => reporter.begin(run, before),
    onEvent: (run, event) => reporter.event(run, event),
    onProgress: (run, progress) => reporter.progress(run, progress),
    onEnd: (run) => reporter.end(run),
    finish: (result, directory) =>
      reporter.finish(result, nextCommands(['ablate', directory, '--seeds', '5'], ['report', directory])),
    interrupted: (next) => reporter.interrupted(next),
  };
}
