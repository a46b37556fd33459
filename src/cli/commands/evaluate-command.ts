import { ArgumentError, messageOf } from '@drmas/engine/errors';
import { EVENT_VERSION } from '@drmas/engine/events';
import { systemClock } from '@drmas/engine/host';
import { nodeFiles } from '@drmas/engine/platform';
import { evaluateRun } from '../../runs/index.js';
import { interruptedForGood, jsonSink } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import {
  allowEndpoint,
  checkpoint,
  device,
  integer,
  json,
  list,
  set,
  share,
  text,
  threads,
  toggle,
  withDevice,
} from '../flags.js';
import { junitReport, limitText, verdictOf } from '../reporter/junit-report.js';
import { evaluationLine, playLine } from '../reporter/progress-printer.js';
import { evaluationLines } from '../reporter/score-printer.js';
import { StatusLines, screenOf } from '../reporter/screen.js';

export const evaluate = defineCommand({
  name: 'evaluate',
  description: 'evaluate a run, or a recipe before any training, on held-out tasks',
  details:
    'plays held-out tasks with the last checkpoint, or with an older one (`--checkpoint`), and prints avg@k, pass@k and maj@k with intervals. `--by level` also prints scores for each value of a task field. Given a recipe, the models play as they are before reinforcement, and all agents may be frozen endpoints: the baseline of hosted models, with cost if the endpoints have a `price`. `--at-least 0.9` is a check for CI: the exit code is 1 if avg@k is lower',
  arguments: [argument('run', 'directory of the run; or a recipe, by name or file')],
  flags: {
    set,
    checkpoint,
    tasks: integer(1, 'held-out tasks, of each benchmark (default: the recipe)'),
    samples: integer(1, 'episodes of each task (default: the recipe)'),
    by: list('fields', 'task fields such as level: also print scores for each of their values'),
    recipe: text('file', "the recipe's file, if it was moved"),
    episodes: text('file', 'for a recipe: new file for the played episodes (default: a file below runs/)'),
    allowEndpoint,
    atLeast: share('exit with code 1 if avg@k is below this share, such as 0.9'),
    junit: text('file', 'with --at-least: also write the verdict as JUnit XML'),
    acceptChanges: toggle('evaluate although the code of the recipe has changed'),
    device,
    threads,
    json,
  },
  examples: [
    'drmas evaluate runs/first --tasks 500 --samples 8 --by level',
    'drmas evaluate runs/first --set evaluation.sampling.temperature=0',
    'drmas evaluate my-team.ts --tasks 100',
    'drmas evaluate runs/first --at-least 0.9 --junit report.xml',
  ],
  async run(context, [path], { json: asJson, checkpoint: from, atLeast, junit, ...options }) {
    const { signal } = context;
    if (junit !== undefined && atLeast === undefined)
      throw new ArgumentError('--junit needs a score to check: add --at-least, such as --at-least 0.9');
    const screen = screenOf(context.stdout, context.environment);
    const lines = new StatusLines(screen);
    try {
      const { event, keep } = await evaluateRun(
        path,
        {
          ...withDevice(options),
          from,
          signal,
          onNotice: (message) => void context.stderr.write(`${message}\n`),
          ...(asJson === true
            ? {}
            : { onProgress: (progress) => lines.passing(() => playLine(progress, 0, screen.width)) }),
        },
        context.place,
      );
      lines.say();
      const now = systemClock.now();
      const verdict = atLeast === undefined ? undefined : verdictOf(event, atLeast);
      const check = atLeast === undefined ? undefined : { atLeast, passed: verdict?.passed === true };
      if (asJson === true) {
        jsonSink(context).write({ ...event, ...check, time: now.toISOString(), version: EVENT_VERSION });
      } else {
        const { width } = screen;
        for (const line of [evaluationLine(event, width), '', ...evaluationLines(event, width)])
          context.stdout.write(`${line}\n`);
      }
      const kept = await keep(now).catch((error: unknown) => {
        context.stderr.write(`cannot store the episodes: ${messageOf(error)}\n`); // the scores are printed nevertheless
      });
      if (kept !== undefined && asJson !== true) context.stdout.write(`episodes: ${kept}\n`);
      if (check?.passed === false)
        context.stderr.write(`${verdict?.says}, below the ${limitText(check.atLeast)} of --at-least\n`);
      if (check !== undefined && junit !== undefined)
        await nodeFiles.write(junit, junitReport(path, event, check.atLeast));
      return kept === undefined || check?.passed === false ? 1 : 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      return interruptedForGood(context);
    }
  },
});
