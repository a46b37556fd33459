import { RecipeError } from '@drmas/engine/errors';
import { weightVectors } from '../../runs/studies.js';
import type { CommandContext } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { allowEndpoint, device, integer, json, list, repeated, set, text, track, withDevice } from '../flags.js';
import { type AblationView, reportAblation } from '../report-ablation.js';
import { ablationLines, endedLine, successLines } from '../reporter/ablation-printer.js';
import { evaluationLine, playLine } from '../reporter/progress-printer.js';
import { StatusLines, screenOf } from '../reporter/screen.js';
import { duration, nearPath, nextCommands, wrap } from '../reporter/text-layout.js';
import { onRay, withRay } from '../with-ray.js';

/** Jobs that are submitted and watched concurrently. Ray starts as many of them as it has CPUs for. */
const JOBS_AT_ONCE = 64;

export const ablate = defineCommand({
  name: 'ablate',
  description: 'compare variants of a recipe over paired seeds, with intervals',
  details:
    'trains each value of `--vary key=a,b`, or each bundle of `--variant name=key=a,other=b`, with the same seeds, and compares them pair by pair, from two pairs on with 95 % intervals, and from six on it says whether a difference is shown. `--weights correct,attempts` trains a grid of weights for named parts of the reward and draws the Pareto front. Given its directory, it resumes an interrupted ablation',
  arguments: [argument('recipe', 'name or file; or the directory of an ablation, to resume it')],
  flags: {
    vary: repeated('key=value,value', 'values of a setting to compare; several --vary make a grid'),
    variant: repeated('name=key=value,key=value', 'a variant with a name and several settings; may be repeated'),
    weights: list(
      'parts',
      "named parts of the team's reward, such as correct,attempts: compare a grid of their weights",
    ),
    points: integer(2, 'with --weights: points of the grid for each part (default: 5)'),
    seeds: integer(1, 'number of pairs; pair i has seed i and warm start i (default: 6)'),
    warmStartSeed: integer(0, 'use the warm start of this seed for all pairs'),
    baseline: text('value', 'the value that the others are compared with (default: the first)'),
    set,
    run: text('directory', 'directory of the ablation (default: runs/<recipe>-ablation-<time>)'),
    parallel: integer(1, 'concurrent runs (default: up to 4 for small models, else 1)'),
    allowEndpoint,
    ...onRay,
    device,
    threads: integer(1, 'kernel threads of all runs together (default: all cores)'),
    track,
    json,
  },
  examples: [
    'drmas ablate math --vary advantage.type=grpo,grpo-turn,drmas --seeds 10',
    'drmas ablate my-team.ts --vary advantage.type=grpo,drmas --vary training.groupSize=4,8 --seeds 3',
    'drmas ablate math --variant long=warmStart.steps=2000,training.steps=20 --variant short=warmStart.steps=1000',
    'drmas ablate math --weights correct,attempts --points 5 --seeds 5',
    'drmas ablate runs/math-ablation-20260131-094501',
  ],
  run: async (context, [source], { variant, weights, points, ray, store, rayCommand, gpusPerRun, ...flags }) => {
    if (weights !== undefined && variant.length > 0)
      throw new RecipeError('--weights and --variant exclude each other');
    if (weights === undefined && points !== undefined) throw new RecipeError('--points needs --weights');
    const graded = weights && { parts: weights, variants: weightVectors(weights, points) };
    const together = ray === undefined ? {} : { parallel: flags.parallel ?? JOBS_AT_ONCE };
    return withRay(context, { ray, store, rayCommand, gpusPerRun, cpus: flags.threads }, (there) =>
      reportAblation(
        there,
        { command: 'ablate', type: 'ablation', completed: (given) => given },
        source,
        { ...withDevice(flags), ...together, variants: variant, ...graded },
        viewOf(context),
      ),
    );
  },
});

function viewOf({ stdout, environment }: CommandContext): AblationView {
  const screen = screenOf(stdout, environment);
  const { width } = screen;
  const status = new StatusLines(screen);
  const say = (...lines: string[]) => status.say(...lines);
  let steps = 0;
  let saysSuccess = false;
  const started = performance.now();
  return {
    notify: (message) => say(...wrap(message, width)),
    onStart: (plan) => {
      steps = plan.runs[0]?.recipe.training.steps ?? 0;
      saysSuccess = plan.runs[0]?.recipe.team.success !== undefined;
      const at = plan.parallel > 1 ? `, ${plan.parallel} at a time` : '';
      say(`${plan.runs.length} runs${at}, in ${nearPath(plan.directory)}`);
    },
    onBegin: ({ variant, seed }) => say(`${variant}, pair ${seed}: starts`),
    onEvent: ({ variant, seed }, event) => {
      const who = `${variant}, pair ${seed}: `;
      if (event.type === 'evaluation') say(who + evaluationLine(event, width - who.length));
    },
    onProgress: ({ variant, seed }, progress) => {
      const who = `${variant}, pair ${seed}: `;
      status.passing(() => who + playLine(progress, steps, width - who.length));
    },
    onEnd: (run) => say(...wrap(`${endedLine(run)}  (${duration((performance.now() - started) / 1000)})`, width)),
    finish: (result, directory) =>
      say(
        '',
        ...ablationLines(result, width),
        ...successLines(result, saysSuccess, width),
        '',
        `runs in ${directory}`,
        ...nextCommands(['watch', directory], ['report', directory]),
      ),
    interrupted: (next) => say('', next),
  };
}
