import { RecipeError } from '../../core/errors.js';
import type { RunEvent } from '../../core/events.js';
import { type AblateOptions, ablateWith } from '../../studies/ablation/ablate.js';
import { type AblationRecord, readAblation } from '../../studies/ablation/ablation-record.js';
import { type CommandContext, INTERRUPTED } from '../command-context.js';
import { ablationLines, endedLine } from '../reporter/ablation-printer.js';
import { evaluationLine } from '../reporter/progress-printer.js';
import { screenOf } from '../reporter/screen.js';
import { duration, nearPath, wrap } from '../reporter/text-layout.js';

export interface AblateFlags {
  readonly vary: readonly string[];
  readonly set: readonly string[];
  readonly seeds?: number;
  readonly warmStartSeed?: number;
  readonly baseline?: string;
  readonly run?: string;
  readonly threads?: number;
  readonly parallel?: number;
  readonly json?: boolean;
}

/** `drmas ablate <recipe>`: trains variants of a recipe in pairs and compares them. Given an ablation's directory it goes on. */
export async function ablateCommand(context: CommandContext, source: string, flags: AblateFlags): Promise<number> {
  const known = await readAblation(source);
  const { recipe, ...asked } = known === undefined ? { recipe: source, ...flags } : again(source, known, flags);
  const { signal } = context;
  const { width } = screenOf(context.stdout, context.environment);
  const say = (...lines: string[]) => {
    for (const line of lines) context.stdout.write(`${line}\n`);
  };
  const json = flags.json === true;
  const notices = new Set<string>(); // every run finds the same compiler and the same cache
  const onNotice = (message: string) => {
    if (notices.has(message)) return;
    notices.add(message);
    if (json) context.stderr.write(`${message}\n`);
    else say(...wrap(message, width));
  };
  const started = performance.now();
  let directory = '';
  const told: Pick<AblateOptions, 'onStart' | 'onBegin' | 'onEvent' | 'onEnd'> = json
    ? {
        onEvent: ({ name }, event: RunEvent) => say(JSON.stringify({ run: name, ...event })),
      }
    : {
        onStart: (plan) => {
          directory = nearPath(plan.directory);
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
  try {
    const result = await ablateWith(context.work, recipe, { ...asked, signal, onNotice, ...told });
    if (json) say(JSON.stringify({ type: 'ablation', ...result }));
    else say('', ...ablationLines(result, width), '', `the runs lie in ${directory}`, ...next(directory));
    return result.runs.some(({ status }) => status === 'failed') ? 1 : 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    if (!json && directory !== '') say('', `interrupted; go on with: npx drmas ablate ${directory}`);
    return INTERRUPTED;
  }
}

const next = (directory: string) => ['next', `  npx drmas report ${directory}/*/`];

/** What an ablation was asked for before; more seeds and another baseline may be asked for, nothing else. */
function again(directory: string, record: AblationRecord, flags: AblateFlags) {
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
