import type { PlayObserver } from '../../../core/play/play-observer.js';
import { nodeHost } from '../../../platform/node-host.js';
import { lastCheckpoint, requestRecipe } from '../../../run/request.js';
import { RunDirectory } from '../../../store/run-directory.js';
import { interruptedForGood, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { device, integer, set, text, threads, toggle, withDevice } from '../../flags.js';
import { probeLines } from '../../reporter/planning/probe-printer.js';
import { warmupLines } from '../../reporter/progress-printer.js';
import { screenOf } from '../../reporter/screen.js';
import { StatusLines } from '../../reporter/status-lines.js';
import { wrap } from '../../reporter/text-layout.js';

/** The number of tasks that are played by default. */
const TASKS = 32;

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
    device,
    threads,
    json: toggle('print the findings as JSON'),
  },
  examples: [
    'drmas probe math',
    'drmas probe my-team.ts --tasks 64 --set training.groupSize=16',
    'drmas probe math --from runs/math-20260131-094501',
  ],
  async run(context, [source], flags) {
    const { recipe } = await requestRecipe(source, withDevice(flags));
    const checkpoint =
      flags.from === undefined ? undefined : await lastCheckpoint(await RunDirectory.open(flags.from), 'probe');
    const { width } = screenOf(context.stdout, context.environment);
    const status = new StatusLines(screenOf(context.stderr, context.environment));
    const { signal } = context;
    const tasks = flags.tasks ?? TASKS;
    const observer = flags.json === true ? undefined : playedObserver(status, tasks * recipe.training.groupSize);
    try {
      const notify = (message: string) => status.say(...wrap(message, width));
      const host = nodeHost({ threads: flags.threads, signal, notify, observer });
      const report = await context.work
        .probeRecipe(recipe, host, { tasks, checkpoint, onWarmup: warmupLines(status, width) })
        .finally(() => status.say());
      const lines = flags.json === true ? [jsonText({ type: 'probe', ...report })] : probeLines(report, width);
      for (const line of lines) context.stdout.write(`${line}\n`);
      return 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      return interruptedForGood(context);
    }
  },
});

/** Counts the episodes that are over, on a line that passes; a probe may play more than it was asked for. */
function playedObserver(status: StatusLines, wanted: number): PlayObserver {
  let played = 0;
  const line = () => `played ${played} of ${Math.max(played, wanted)} episodes`;
  return {
    round: ({ phase }) => ({
      ended() {
        if (phase !== 'training') return;
        played++;
        status.passing(line);
      },
    }),
  };
}
