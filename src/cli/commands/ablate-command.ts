import { RecipeError } from '../../core/errors.js';
import { weightVectors } from '../../studies/ablation/weight-vectors.js';
import type { CommandContext } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { device, integer, json, list, repeated, set, text, track, withDevice } from '../flags.js';
import { type AblationView, reportAblation } from '../report-ablation.js';
import { ablationLines, endedLine } from '../reporter/ablation-printer.js';
import { evaluationLine, playLine } from '../reporter/progress-printer.js';
import { screenOf } from '../reporter/screen.js';
import { StatusLines } from '../reporter/status-lines.js';
import { duration, nearPath, wrap } from '../reporter/text-layout.js';
import { onRay, withRay } from '../with-ray.js';

/** Jobs that are followed at once; Ray begins as many of them as it has CPUs for. */
const JOBS_AT_ONCE = 64;

/**
 * Trains variants of a recipe in pairs and compares them. Given the directory of an ablation, it goes on with that one.
 */
export const ablate = defineCommand({
  name: 'ablate',
  description: 'compare variants of a recipe over paired seeds',
  details:
    'trains every value of `--vary key=a,b`, or every bundle `--variant name=key=a,other=b`, with the same seeds, tasks and warm starts, and compares them pair by pair with 95 % intervals. `--weights correct,attempts` trains a grid of weights of named parts of the reward, and draws the Pareto front. `--seeds`, `--baseline`, `--parallel`; goes on where it was interrupted',
  arguments: [argument('recipe', 'name or file; or the directory of an ablation, to go on with it')],
  flags: {
    vary: repeated('key=value,value', 'values of a leaf to compare; several --vary make a grid'),
    variant: repeated('name=key=value,key=value', 'a named bundle of values to compare; one for each variant'),
    weights: list('parts', "named parts of the team's reward, such as correct,attempts: a grid of their weights"),
    points: integer(2, 'weights of a part in that grid (default: 5)'),
    seeds: integer(1, 'pairs; pair i has seed i and warm start i (default: 5)'),
    warmStartSeed: integer(0, 'the same warm start for all pairs'),
    baseline: text('value', 'what the others are compared with (default: the first value)'),
    set,
    run: text('directory', 'directory of the ablation (default: runs/<recipe>-ablation-<time>)'),
    parallel: integer(1, 'runs at once (default: small models up to 4, others 1)'),
    ...onRay,
    device,
    threads: integer(1, 'threads of all runs together (default: all cores)'),
    track,
    json,
  },
  examples: [
    'drmas ablate math --vary advantage.type=grpo,grpo-turn,drmas --seeds 5',
    'drmas ablate my-team.ts --vary advantage.type=grpo,drmas --vary training.groupSize=4,8 --seeds 3',
    'drmas ablate math --variant taught=warmStart.steps=2000,training.steps=20 --variant found=warmStart.steps=1000',
    'drmas ablate math --weights correct,attempts --points 5 --seeds 5',
    'drmas ablate runs/math-ablation-20260131-094501',
  ],
  run: async (context, [source], { variant, weights, points, ray, store, rayCommand, ...flags }) => {
    if (weights !== undefined && variant.length > 0)
      throw new RecipeError('--weights makes variants of its own; --variant does not apply');
    if (weights === undefined && points !== undefined)
      throw new RecipeError('--points divides the weights of --weights; expected both');
    const graded = weights && { parts: weights, variants: weightVectors(weights, points) };
    const together = ray === undefined ? {} : { parallel: flags.parallel ?? JOBS_AT_ONCE };
    return withRay(context, { ray, store, rayCommand, cpus: flags.threads }, (there) =>
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

/** Writes lines about runs that begin, are evaluated and end. */
function viewOf({ stdout, environment }: CommandContext): AblationView {
  const screen = screenOf(stdout, environment);
  const { width } = screen;
  const status = new StatusLines(screen);
  const say = (...lines: string[]) => status.say(...lines);
  let steps = 0;
  const started = performance.now();
  return {
    notify: (message) => say(...wrap(message, width)),
    onStart: (plan) => {
      steps = plan.runs[0]?.recipe.training.steps ?? 0;
      const at = plan.parallel > 1 ? `, ${plan.parallel} at a time` : '';
      say(`${plan.runs.length} runs${at}, in ${nearPath(plan.directory)}`);
    },
    onBegin: ({ variant, seed }) => say(`${variant}, pair ${seed}: begins`),
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
        '',
        `the runs lie in ${directory}`,
        'next',
        `  npx drmas watch ${directory}`,
        `  npx drmas report ${directory}`,
      ),
    interrupted: (next) => say('', next),
  };
}
