import { systemClock } from '../../core/clock.js';
import { messageOf } from '../../core/errors.js';
import { EVENT_VERSION } from '../../core/events.js';
import { evaluateWith } from '../../run/api.js';
import { interruptedForGood, jsonSink } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { device, integer, json, list, set, text, threads, toggle, withDevice } from '../flags.js';
import { evaluationLine, playLine } from '../reporter/progress-printer.js';
import { evaluationLines } from '../reporter/score-printer.js';
import { screenOf } from '../reporter/screen.js';
import { StatusLines } from '../reporter/status-lines.js';

/** Plays held-out tasks with the last checkpoint of a run, and keeps the episodes beside those of the run. */
export const evaluate = defineCommand({
  name: 'evaluate',
  description: "play held-out tasks with a run's last checkpoint",
  details:
    'plays held-out tasks with the last checkpoint: avg@k, pass@k, maj@k with intervals. `--tasks`, `--samples`, `--by level`, `--set`',
  arguments: [argument('run', 'directory of the run')],
  flags: {
    set,
    samples: integer(1, 'episodes a task'),
    tasks: integer(1, 'held-out tasks, of each benchmark'),
    by: list('fields', 'fields of tasks by which the scores are divided too, such as level'),
    recipe: text('file', "where the recipe's file lies now, if it was moved"),
    acceptChanges: toggle('play although the code of the recipe has changed'),
    device,
    threads,
    json,
  },
  examples: [
    'drmas evaluate runs/first --tasks 500 --samples 8 --by level',
    'drmas evaluate runs/first --set evaluation.sampling.temperature=0',
  ],
  async run(context, [path], { json: asJson, ...options }) {
    const { signal } = context;
    const screen = screenOf(context.stdout, context.environment);
    const lines = new StatusLines(screen);
    try {
      const { event, episodes, log } = await evaluateWith(context.work, path, {
        ...withDevice(options),
        signal,
        onNotice: (message) => void context.stderr.write(`${message}\n`),
        ...(asJson === true
          ? {}
          : { onProgress: (progress) => lines.passing(() => playLine(progress, 0, screen.width)) }),
      });
      lines.say();
      const now = systemClock.now();
      if (asJson === true) {
        jsonSink(context).write({ ...event, time: now.toISOString(), version: EVENT_VERSION });
      } else {
        const { width } = screen;
        for (const line of [evaluationLine(event, width), '', ...evaluationLines(event, width)])
          context.stdout.write(`${line}\n`);
      }
      const kept = await log.writeOtherEpisodes(episodes, now).catch((error: unknown) => {
        context.stderr.write(`the episodes are not kept: ${messageOf(error)}\n`); // the scores are there all the same
      });
      if (kept !== undefined && asJson !== true) context.stdout.write(`episodes: ${kept}\n`);
      return 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      return interruptedForGood(context);
    }
  },
});
