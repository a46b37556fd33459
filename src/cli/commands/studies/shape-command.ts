import { RecipeError } from '@drmas/engine/errors';
import { commandText, nodeHost } from '@drmas/engine/platform';
import type { Recipe } from '../../../method/recipe.js';
import { readAblation } from '../../../method/store.js';
import { requireOwnAblation, shapeTeam } from '../../../runs/studies.js';
import { INTERRUPTED, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { decimal, device, integer, json, list, set, text, withDevice } from '../../flags.js';
import { shapeLines, shapePlanLines } from '../../reporter/planning/shape-printer.js';
import { nearPath } from '../../reporter/text-layout.js';
import { viewOf } from '../ablate-command.js';

const MARGIN = 2;
/** Seconds that are measured for the forecast of time. */
const MEASURED = 5;

/** Finds the smallest team that is as good. Given the directory of such a study, it resumes that. */
export const shape = defineCommand({
  name: 'shape',
  description: 'find the smallest team that is as good, with a test',
  details:
    'derives smaller teams from what the team and its recipe declare: without an agent that has an `absent` text, with a lower limit of `limits`, with a smaller model of `candidates`, with one policy for two agents, with a frozen agent. It trains them beside the whole team with equal seeds from one warm start, drops those that are shown to lose more than `--margin`, and names the cheapest whose loss is shown to be smaller (Student t over pairs, one-sided 5 % over all variants by Holm). It writes the recipe file of that team, or recommends the whole team',
  arguments: [argument('recipe', 'name or file; or the directory of such a study, to resume it')],
  flags: {
    margin: decimal(`loss of score that you accept, in points (default: ${MARGIN})`),
    cuts: list('kinds', 'only these cuts: drop, limit, model, merge, freeze (default: all)'),
    seeds: integer(2, 'number of pairs; pair i has seed i (default: 5)'),
    warmStartSeed: integer(0, "seed of the warm start of all runs (default: the recipe's)"),
    set,
    run: text('directory', 'directory of the study (default: runs/<recipe>-shape-<time>)'),
    jobs: integer(1, 'concurrent runs (default: up to 4 for small models, else 1)'),
    device,
    threads: integer(1, 'kernel threads of all runs together (default: all cores)'),
    json,
  },
  examples: [
    'drmas shape my-team.ts',
    'drmas shape my-team.ts --margin 1 --seeds 8 --cuts drop,limit',
    'drmas shape runs/my-team-shape-20260131-094501',
  ],
  async run(context, [source], { json: asJson = false, jobs, ...typed }) {
    const { signal, protect, stdout, stderr } = context;
    const { recipe, margin = MARGIN, ...flags } = await requested(source, withDevice(typed));
    /** A run in this machine's measured speed. A study that resumes is not measured again. */
    const forecast = async (whole: Recipe) => {
      const measure = { seconds: MEASURED, machines: [], concurrency: [] };
      const host = nodeHost({ threads: flags.threads, signal });
      return (await context.forecastRun(whole, host, { measure })).time?.seconds;
    };
    const view = viewOf(context);
    const say = (lines: readonly string[]) => lines.forEach((line) => void stdout.write(`${line}\n`));
    let directory = '';
    const notices = new Set<string>(); // all runs have the same notices
    try {
      const result = await shapeTeam(context.place, recipe, {
        ...flags,
        ...{ margin: margin / 100, signal, protect },
        ...(jobs === undefined ? {} : { parallel: jobs }),
        onNotice: (message) => {
          if (notices.has(message)) return;
          notices.add(message);
          if (asJson) stderr.write(`${message}\n`);
          else view.notify(message);
        },
        ...(asJson
          ? { onEvent: ({ name }, event) => say([jsonText({ run: name, ...event })]) }
          : {
              ...(recipe === source ? { forecast } : {}),
              onBegin: (...args) => view.onBegin?.(...args),
              onEvent: (...args) => view.onEvent?.(...args),
              onProgress: (...args) => view.onProgress?.(...args),
              onEnd: (run) => view.onEnd?.(run),
            }),
        onStart: (plan) => {
          directory = nearPath(plan.directory);
          if (!asJson) for (const line of shapePlanLines(plan, view.width)) view.notify(line);
        },
      });
      say(asJson ? [jsonText({ type: 'shape', ...result })] : shapeLines(result, view.width));
      return result.variants.some(({ verdict }) => verdict === 'failed') ? 1 : 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      if (!asJson && directory !== '')
        view.interrupted(`interrupted; resume with: ${commandText(['npx', 'drmas', 'shape', directory])}`);
      return INTERRUPTED;
    }
  },
});

interface Typed {
  readonly margin?: number;
  readonly cuts?: readonly string[];
  readonly seeds?: number;
  readonly warmStartSeed?: number;
  readonly set: readonly string[];
  readonly run?: string;
  readonly threads?: number;
}

/** The request of a new study, or of one that resumes. @throws RecipeError if a flag cannot change then */
async function requested(
  source: string,
  typed: Typed,
): Promise<Typed & { readonly recipe: string; readonly teams?: readonly string[] | undefined }> {
  const before = await readAblation(source);
  if (before === undefined) return { recipe: source, ...typed };
  if (before.margin === undefined)
    throw new RecipeError(`${source} is an ablation; resume it with drmas ablate ${source}`);
  const { cuts, set, run, warmStartSeed, margin } = typed;
  if (set.length > 0 || [cuts, run, warmStartSeed, margin].some((value) => value !== undefined))
    throw new RecipeError(
      `${source} resumes with its own settings; --margin, --cuts, --set, --run and --warm-start-seed do not apply`,
    );
  await requireOwnAblation(source, before);
  const { recipe, seeds, warmStartSeed: began } = before;
  return {
    ...typed,
    ...{ recipe: recipe.source, set: recipe.overrides, run: source, margin: 100 * before.margin },
    ...{ seeds: typed.seeds ?? seeds, teams: before.bundles?.map(({ name }) => name) },
    ...(began === undefined ? {} : { warmStartSeed: began }),
  };
}
