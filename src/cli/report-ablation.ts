import { RecipeError } from '../core/errors.js';
import { type AblationRecord, readAblation } from '../store/ablation-record.js';
import { type AblateOptions, type AblationResult, ablateWith } from '../studies/ablation/ablate.js';
import { type CommandContext, INTERRUPTED, jsonText } from './command-context.js';
import { nearPath } from './reporter/text-layout.js';

/** What a person sees of an ablation: callbacks while it goes on, and lines at its end. */
export interface AblationView extends Pick<AblateOptions, 'onStart' | 'onBegin' | 'onEvent' | 'onProgress' | 'onEnd'> {
  /** Says something that is no event. */
  notify(message: string): void;
  /** @param directory As a person would type it */
  finish(result: AblationResult, directory: string): void;
  /** @param next How to go on */
  interrupted(next: string): void;
}

/** The flags of a command that makes runs to compare. */
export interface AblationFlags
  extends Pick<
    AblateOptions,
    'parts' | 'seeds' | 'track' | 'firstSeed' | 'warmStartSeed' | 'baseline' | 'run' | 'threads' | 'parallel'
  > {
  readonly vary: readonly string[];
  readonly variants?: readonly string[] | Readonly<Record<string, readonly string[]>>;
  readonly set: readonly string[];
  readonly json?: boolean;
}

/** What tells commands that make ablations apart. */
export interface AblationKind {
  /** The command to type to go on. */
  readonly command: string;
  /** The type of the last JSON line, which holds the result. */
  readonly type: string;
  /** Fills in what a new ablation needs where it is not given. */
  readonly completed: (flags: AblationFlags) => AblationFlags;
}

/**
 * Makes an ablation, or goes on with the one whose directory `source` is, and tells what happens: a program through
 * JSON lines, a person through a view.
 */
export async function reportAblation(
  context: CommandContext,
  { command, type, completed }: AblationKind,
  source: string,
  { json = false, ...flags }: AblationFlags,
  view: AblationView,
): Promise<number> {
  const begun = await readAblation(source);
  const { recipe, ...request } =
    begun === undefined ? { recipe: source, ...completed(flags) } : continuation(source, begun, flags);
  const { signal, protect } = context;
  const print = (value: unknown) => void context.stdout.write(`${jsonText(value)}\n`);
  const notices = new Set<string>(); // every run has the same compiler and the same cache
  const onNotice = (message: string) => {
    if (notices.has(message)) return;
    notices.add(message);
    if (json) context.stderr.write(`${message}\n`);
    else view.notify(message);
  };
  let directory = '';
  const listeners: Partial<AblateOptions> = json
    ? { onEvent: ({ name }, event) => print({ run: name, ...event }) }
    : {
        onStart: (plan) => {
          directory = nearPath(plan.directory);
          view.onStart?.(plan);
        },
        onBegin: (...args) => view.onBegin?.(...args),
        onEvent: (...args) => view.onEvent?.(...args),
        onProgress: (...args) => view.onProgress?.(...args),
        onEnd: (run) => view.onEnd?.(run),
      };
  try {
    const result = await ablateWith(context.work, recipe, { ...request, signal, protect, onNotice, ...listeners });
    if (json) print({ type, ...result });
    else view.finish(result, directory);
    return result.runs.some(({ status }) => status === 'failed') ? 1 : 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    if (!json && directory !== '') view.interrupted(`interrupted; go on with: npx drmas ${command} ${directory}`);
    return INTERRUPTED;
  }
}

/** The request of an ablation that was begun before: more seeds and another baseline may be asked for, nothing else. */
function continuation(directory: string, record: AblationRecord, flags: AblationFlags) {
  const { vary, variants = [], set, firstSeed, warmStartSeed, run } = flags;
  if (
    [vary, Object.keys(variants), set].some(({ length }) => length > 0) ||
    [firstSeed, warmStartSeed, run].some((value) => value !== undefined)
  )
    throw new RecipeError(
      `${directory} is an ablation: it goes on as it was begun, --vary, --variant, --seed, --set and --run do not apply`,
    );
  return {
    ...flags,
    recipe: record.recipe.source,
    vary: record.vary.map(({ key, values }) => `${key}=${values.join(',')}`),
    variants: Object.fromEntries((record.bundles ?? []).map(({ name, overrides }) => [name, overrides])),
    set: record.recipe.overrides,
    ...(record.parts === undefined ? {} : { parts: record.parts }),
    seeds: flags.seeds ?? record.seeds,
    baseline: flags.baseline ?? record.baseline,
    ...(record.firstSeed === undefined ? {} : { firstSeed: record.firstSeed }),
    ...(record.warmStartSeed === undefined ? {} : { warmStartSeed: record.warmStartSeed }),
    run: directory,
  };
}
