import { RecipeError } from '../../core/errors.js';
import { type AblateOptions, ablateWith } from '../../studies/ablation/ablate.js';
import { type AblationRecord, readAblation } from '../../studies/ablation/ablation-record.js';
import { INTERRUPTED, jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { integer, json, repeated, set, text } from '../flags.js';
import { ablationLines, endedLine } from '../reporter/ablation-printer.js';
import { evaluationLine } from '../reporter/progress-printer.js';
import { screenOf } from '../reporter/screen.js';
import { duration, nearPath, wrap } from '../reporter/text-layout.js';

/**
 * Trains variants of a recipe in pairs and compares them. Given the directory of an ablation, it goes on with that one.
 */
export const ablate = defineCommand({
  name: 'ablate',
  description: 'compare variants of a recipe over paired seeds',
  details:
    'trains every value of `--vary key=a,b` with the same seeds, tasks and warm starts, and compares them pair by pair with 95 % intervals. `--seeds`, `--baseline`, `--parallel`; goes on where it was interrupted',
  arguments: [argument('recipe', 'name or file; or the directory of an ablation, to go on with it')],
  flags: {
    vary: repeated('key=value,value', 'values of a leaf to compare; several --vary make a grid'),
    seeds: integer(1, 'pairs; pair i has seed i and warm start i (default: 5)'),
    warmStartSeed: integer(0, 'the same warm start for all pairs'),
    baseline: text('value', 'what the others are compared with (default: the first value)'),
    set,
    run: text('directory', 'directory of the ablation (default: runs/<recipe>-ablation-<time>)'),
    parallel: integer(1, 'runs at once (default: small models up to 4, others 1)'),
    threads: integer(1, 'threads of all runs together (default: all cores)'),
    json,
  },
  examples: [
    'drmas ablate math --vary advantage.type=grpo,grpo-turn,drmas --seeds 5',
    'drmas ablate my-team.ts --vary advantage.type=grpo,drmas --vary training.groupSize=4,8 --seeds 3',
    'drmas ablate runs/math-ablation-20260131-094501',
  ],
  async run(context, [source], flags) {
    const begun = await readAblation(source);
    const { recipe, ...request } =
      begun === undefined ? { recipe: source, ...flags } : continuation(source, begun, flags);
    const { signal } = context;
    const { width } = screenOf(context.stdout, context.environment);
    const say = (...lines: string[]) => {
      for (const line of lines) context.stdout.write(`${line}\n`);
    };
    const asJson = flags.json === true;
    const notices = new Set<string>(); // every run has the same compiler and the same cache
    const onNotice = (message: string) => {
      if (notices.has(message)) return;
      notices.add(message);
      if (asJson) context.stderr.write(`${message}\n`);
      else say(...wrap(message, width));
    };
    let directory = '';
    const listeners: Listeners = asJson
      ? { onEvent: ({ name }, event) => say(jsonText({ run: name, ...event })) }
      : forPeople(say, width, (begins) => {
          directory = begins;
        });
    try {
      const result = await ablateWith(context.work, recipe, { ...request, signal, onNotice, ...listeners });
      if (asJson) say(jsonText({ type: 'ablation', ...result }));
      else say('', ...ablationLines(result, width), '', `the runs lie in ${directory}`, ...next(directory));
      return result.runs.some(({ status }) => status === 'failed') ? 1 : 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      if (!asJson && directory !== '') say('', `interrupted; go on with: npx drmas ablate ${directory}`);
      return INTERRUPTED;
    }
  },
});

/** The callbacks of an ablation while it goes on. */
type Listeners = Pick<AblateOptions, 'onStart' | 'onBegin' | 'onEvent' | 'onEnd'>;

/** Callbacks that write lines about runs that begin, are evaluated and end. */
function forPeople(say: (...lines: string[]) => void, width: number, begins: (directory: string) => void): Listeners {
  const started = performance.now();
  return {
    onStart: (plan) => {
      const directory = nearPath(plan.directory);
      begins(directory);
      const at = plan.parallel > 1 ? `, ${plan.parallel} at a time` : '';
      say(`${plan.runs.length} runs${at}, in ${directory}`);
    },
    onBegin: ({ variant, seed }) => say(`${variant}, pair ${seed}: begins`),
    onEvent: ({ variant, seed }, event) => {
      const who = `${variant}, pair ${seed}: `;
      if (event.type === 'evaluation') say(who + evaluationLine(event, width - who.length));
    },
    onEnd: (run) => say(...wrap(`${endedLine(run)}  (${duration((performance.now() - started) / 1000)})`, width)),
  };
}

const next = (directory: string) => ['next', `  npx drmas report ${directory}/*/`];

interface Flags extends Pick<AblateOptions, 'seeds' | 'warmStartSeed' | 'baseline' | 'run' | 'threads' | 'parallel'> {
  readonly vary: readonly string[];
  readonly set: readonly string[];
}

/** The request of an ablation that was begun before: more seeds and another baseline may be asked for, nothing else. */
function continuation(directory: string, record: AblationRecord, flags: Flags) {
  const { vary, set, warmStartSeed, run } = flags;
  if (vary.length > 0 || set.length > 0 || warmStartSeed !== undefined || run !== undefined)
    throw new RecipeError(
      `${directory} is an ablation: it goes on as it was begun, --vary, --set and --run do not apply`,
    );
  return {
    ...flags,
    recipe: record.recipe.source,
    vary: record.vary.map(({ key, values }) => `${key}=${values.join(',')}`),
    set: record.recipe.overrides,
    seeds: flags.seeds ?? record.seeds,
    baseline: flags.baseline ?? record.baseline,
    ...(record.warmStartSeed === undefined ? {} : { warmStartSeed: record.warmStartSeed }),
    run: directory,
  };
}
