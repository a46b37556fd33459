/** Forecasts of `drmas plan --play` compared with runs, without tools and with slow ones. */
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { RunEvent } from '@drmas/engine/events';
import { nodeHost } from '@drmas/engine/platform';
import { defineRecipe, type RecipeDefinition } from '../../../src/method/recipe/define.js';
import { resolveRecipe } from '../../../src/runs/composition/resolve-recipe.js';
import { train } from '../../../src/runs/run/api.js';
import { forecastRun } from '../../../src/runs/studies/plan/forecast-run.js';
import { calculatorRecipe } from '../calculator.js';
import { type Context, withDirectory } from '../context.js';

/**
 * How long tools take, the steps that are compared, and those that a run makes before: a forecast is for a run whose
 * code is compiled, which takes a second of computing; where tools are waited for it does not matter.
 */
const KINDS = [
  { toolsMs: 0, first: 8, steps: 8 },
  { toolsMs: 60, first: 0, steps: 4 },
] as const;
type Kind = (typeof KINDS)[number];
const WARM_START_STEPS = 100;
const TASKS = 32;
/** How far a forecast may be off. */
const WITHIN = 0.2;

export async function benchPlan({ options, results, say }: Context): Promise<void> {
  const threads = Math.max(...options.threads);
  await withDirectory(async (directory) => {
    const forecasts = new Map<string, Forecasts>();
    for (let repetition = 1; repetition <= options.repetitions; repetition++) {
      for (const kind of KINDS) {
        const { toolsMs, steps } = kind;
        const shape = toolsMs === 0 ? 'calculator' : `calculator, tools of ${toolsMs} ms`;
        const definition = withTools(kind);
        const host = nodeHost({ threads });
        const { time } = await forecastRun(resolveRecipe(definition, {}), host, { play: { tasks: TASKS } });
        const { events } = await train(definition, { run: join(directory, `${repetition}-${toolsMs}`), threads });
        const [said, took] = [(time?.stepSeconds ?? 0) * steps, stepSeconds(events, kind)];
        say(`plan ${shape}: forecast ${said.toFixed(2)} s, run ${took.toFixed(2)} s`);
        const known = forecasts.get(shape) ?? { shape, forecasts: [], runs: [] };
        known.forecasts.push(said);
        known.runs.push(took);
        forecasts.set(shape, known);
      }
    }
    // Other work makes both longer, never shorter: the fastest of each is compared.
    const all = [...forecasts.values()].map((one) => ({
      ...one,
      value: Math.min(...one.forecasts) / Math.min(...one.runs),
    }));
    for (const { shape, value } of all)
      results.ratios.push({ part: 'plan', shape, what: 'forecast / run', value, clean: undefined });
    const near = all.filter(({ value }) => Math.abs(value - 1) <= WITHIN).length;
    say(
      `plan: ${near} of ${all.length} forecasts are within ${100 * WITHIN} % of the run, fastest of ${options.repetitions}`,
    );
  });
}

interface Forecasts {
  readonly shape: string;
  /** Seconds of the compared steps, as they were forecast and as they were. */
  readonly forecasts: number[];
  readonly runs: number[];
}

function withTools({ toolsMs, first, steps }: Kind): RecipeDefinition {
  const { input } = calculatorRecipe(first + steps, WARM_START_STEPS);
  if (toolsMs === 0) return defineRecipe(input);
  const { team } = input;
  return defineRecipe({
    ...input,
    team: {
      ...team,
      async play(episode) {
        await wait(toolsMs, undefined, { signal: episode.signal });
        return team.play(episode);
      },
    },
  });
}

/** Seconds of the compared steps, without writing and evaluation between them. */
const stepSeconds = (events: readonly RunEvent[], { first }: Kind): number =>
  events.reduce((sum, event) => sum + (event.type === 'step' && event.step > first ? event.seconds : 0), 0);
