import { given, RecipeError } from '@drmas/engine/errors';
import { commandText } from '@drmas/engine/platform';
import { type AblationRecord, readAblation } from '../method/store.js';
import { type AblateOptions, type AblationResult, ablateIn, requireOwnAblation } from '../runs/studies.js';
import { type CommandContext, INTERRUPTED, jsonText } from './command-context.js';
import { nearPath } from './reporter/text-layout.js';

/** The output of an ablation for a person: callbacks during the runs, and lines at the end. */
export interface AblationView extends Pick<AblateOptions, 'onStart' | 'onBegin' | 'onEvent' | 'onProgress' | 'onEnd'> {
  /** Prints a message that is not an event. */
  notify(message: string): void;
  /** @param directory The path as a person types it */
  finish(result: AblationResult, directory: string): void;
  /** @param next A sentence with the command that resumes the ablation */
  interrupted(next: string): void;
}

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

export interface AblationKind {
  readonly command: string;
  /** The type of the last JSON line, the result. */
  readonly type: string;
  /** Adds the command's defaults to the flags of a new ablation. */
  readonly completed: (flags: AblationFlags) => AblationFlags;
}

/** Runs an ablation, or resumes it if `source` is its directory. Reports as JSON lines or through a view. */
export async function reportAblation(
  context: CommandContext,
  { command, type, completed }: AblationKind,
  source: string,
  { json = false, ...flags }: AblationFlags,
  view: AblationView,
): Promise<number> {
  const begun = await readAblation(source);
  const { recipe, ...request } =
    begun === undefined ? { recipe: source, ...completed(flags) } : await continuation(source, begun, flags);
  const { signal, protect } = context;
  const print = (value: unknown) => void context.stdout.write(`${jsonText(value)}\n`);
  const notices = new Set<string>(); // all runs have the same compiler and cache, and so the same notices
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
    const result = await ablateIn(context.place, recipe, { ...request, signal, protect, onNotice, ...listeners });
    if (json) print({ type, ...result });
    else view.finish(result, directory);
    return result.runs.some(({ status }) => status === 'failed') ? 1 : 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    if (!json && directory !== '')
      view.interrupted(`interrupted; resume with: ${commandText(['npx', 'drmas', command, directory])}`);
    return INTERRUPTED;
  }
}

/** The request to resume an ablation. Only its number of seeds and its baseline may change. @throws RecipeError */
async function continuation(directory: string, record: AblationRecord, flags: AblationFlags) {
  const { vary, variants = [], set, firstSeed, warmStartSeed, run } = flags;
  if (
    [vary, Object.keys(variants), set].some(({ length }) => length > 0) ||
    [firstSeed, warmStartSeed, run].some((value) => value !== undefined)
  )
    throw new RecipeError(
      `${directory} is an ablation: it resumes with its own settings; --vary, --variant, --seed, --set and --run do not apply`,
    );
  await requireOwnAblation(directory, record);
  return {
    ...flags,
    recipe: record.recipe.source,
    vary: Object.fromEntries(record.vary.map(({ key, values }) => [key, values])),
    variants: Object.fromEntries((record.bundles ?? []).map(({ name, overrides }) => [name, overrides])),
    set: record.recipe.overrides,
    ...given({ parts: record.parts }),
    seeds: flags.seeds ?? record.seeds,
    baseline: flags.baseline ?? record.baseline,
    ...given({ firstSeed: record.firstSeed, warmStartSeed: record.warmStartSeed }),
    run: directory,
  };
}
