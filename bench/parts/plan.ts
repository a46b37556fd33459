/** Forecasts of `drmas plan` compared with runs: other numbers of episodes at once, tools, a step played ahead. */
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { RunEvent } from '@drmas/engine/events';
import { nodeHost } from '@drmas/engine/platform';
import { defineRecipe, type RecipeDefinition } from '../../src/method/recipe/define.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { train } from '../../src/runs/run/api.js';
import { prepareTasks } from '../../src/runs/run/open-run.js';
import { forecastAsItIs } from '../../src/runs/studies/plan/forecast.js';
import { measureMachine } from '../../src/runs/studies/plan/measure-machine.js';
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
const PROBE_SECONDS = 12;
const AT_ONCE = [1, 16, 128];
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
        const recipe = resolveRecipe(definition, {});
        const tasks = await prepareTasks(recipe);
        const measured = await measureMachine(recipe, tasks, nodeHost({ threads }), { seconds: PROBE_SECONDS });
        for (const atOnce of AT_ONCE)
          for (const staleness of toolsMs === 0 ? [0] : [0, 1]) {
            const what = `${atOnce} at once${staleness === 0 ? '' : ', one ahead'}`;
            const set = [`training.concurrency=${atOnce}`, `rollout.staleness=${staleness}`];
            const forecast = forecastAsItIs(resolveRecipe(definition, { overrides: set }), measured, measured.machine);
            const run = join(directory, `${repetition}-${toolsMs}-${atOnce}-${staleness}`);
            const { events } = await train(definition, { run, threads, set });
            const [said, took] = [forecast.stepSeconds * steps, stepSeconds(events, kind)];
            say(`plan ${shape}, ${what}: forecast ${said.toFixed(2)} s, run ${took.toFixed(2)} s`);
            const known = forecasts.get(`${shape} ${what}`) ?? { shape, what, forecasts: [], runs: [] };
            known.forecasts.push(said);
            known.runs.push(took);
            forecasts.set(`${shape} ${what}`, known);
          }
      }
    }
    // Other work makes both longer, never shorter: the fastest of each is compared.
    const all = [...forecasts.values()].map((one) => ({
      ...one,
      value: Math.min(...one.forecasts) / Math.min(...one.runs),
    }));
    for (const { shape, what, value } of all)
      results.ratios.push({ part: 'plan', shape, what: `forecast / run, ${what}`, value, clean: undefined });
    const near = all.filter(({ value }) => Math.abs(value - 1) <= WITHIN).length;
    say(
      `plan: ${near} of ${all.length} forecasts are within ${100 * WITHIN} % of the run, fastest of ${options.repetitions}`,
    );
  });
}

interface Forecasts {
  readonly shape: string;
  readonly what: string;
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
