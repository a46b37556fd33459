import type { Warmup } from '../../core/events.js';
import { nodeHost } from '../../platform/node-host.js';
import { lastCheckpoint, requestRecipe } from '../../run/request.js';
import { RunDirectory } from '../../store/run-directory.js';
import { INTERRUPTED, jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { integer, set, text, threads, toggle } from '../flags.js';
import { probeLines } from '../reporter/probe-printer.js';
import { warmupLine } from '../reporter/progress-printer.js';
import { screenOf } from '../reporter/screen.js';
import { wrap } from '../reporter/text-layout.js';

/** The number of tasks that are played by default. */
const TASKS = 32;
/** The least seconds between two lines about the warm start. */
const SECONDS_BETWEEN_LINES = 10;

export const probe = defineCommand({
  name: 'probe',
  description: 'play a few dozen tasks without training: will reinforcement help, and if not, what would',
  details:
    "plays 32 tasks without training: success, groups with a learning signal, invalid outputs, each estimator's inflation and largest advantage, time and memory of the run, three episodes in full. Says plainly when reinforcement will not help, and what would",
  arguments: [argument('recipe', 'name of a recipe that ships, or a TypeScript file')],
  flags: {
    tasks: integer(1, `tasks to play (default: ${TASKS})`),
    from: text('run', "policies of a run's last checkpoint instead of the warm start"),
    set,
    seed: integer(0, 'seed of tasks and sampling'),
    threads,
    json: toggle('print the findings as JSON'),
  },
  examples: [
    'drmas probe math',
    'drmas probe my-team.ts --tasks 64 --set training.groupSize=16',
    'drmas probe math --from runs/math-20260131-094501',
  ],
  async run(context, [source], flags) {
    const { recipe } = await requestRecipe(source, flags);
    const checkpoint =
      flags.from === undefined ? undefined : await lastCheckpoint(await RunDirectory.open(flags.from), 'probe');
    const { width } = screenOf(context.stdout, context.environment);
    const tell = (...lines: string[]) => {
      for (const line of lines) context.stderr.write(`${line}\n`);
    };
    const { signal } = context;
    try {
      const host = nodeHost({ threads: flags.threads, signal, notify: (message) => tell(...wrap(message, width)) });
      const report = await context.work.probeRecipe(recipe, host, {
        tasks: flags.tasks ?? TASKS,
        checkpoint,
        onWarmup: throttledWarmup(tell, width),
      });
      const lines = flags.json === true ? [jsonText({ type: 'probe', ...report })] : probeLines(report, width);
      for (const line of lines) context.stdout.write(`${line}\n`);
      return 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      return INTERRUPTED;
    }
  },
});

/** Writes a line about the warm start now and then. */
function throttledWarmup(tell: (line: string) => void, width: number): (event: Warmup) => void {
  let [written, before] = [Number.NEGATIVE_INFINITY, 0];
  return (event) => {
    const seconds = performance.now() / 1000;
    if (seconds - written >= SECONDS_BETWEEN_LINES || event.step === event.steps) {
      tell(warmupLine(event, before, width));
      written = seconds;
    }
    before = event.step % event.steps;
  };
}
