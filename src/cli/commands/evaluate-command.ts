import { join } from 'node:path';
import { systemClock } from '../../core/clock.js';
import { EVENT_VERSION } from '../../core/events.js';
import { nodeHost } from '../../platform/node-host.js';
import { requestEvaluation } from '../../run/request.js';
import { timeStamp } from '../../store/run-directory.js';
import { type CommandContext, INTERRUPTED, jsonSink } from '../command-context.js';
import { evaluationLine } from '../reporter/progress-printer.js';
import { evaluationLines } from '../reporter/score-printer.js';
import { screenOf } from '../reporter/screen.js';

export interface EvaluateFlags {
  readonly set: readonly string[];
  readonly samples?: number;
  readonly tasks?: number;
  /** Fields of tasks, with commas between them. */
  readonly by?: string;
  readonly threads?: number;
  readonly json?: boolean;
}

/** `drmas evaluate <run>`: plays held-out tasks with the run's last checkpoint and keeps the episodes beside the others. */
export async function evaluateCommand(context: CommandContext, path: string, flags: EvaluateFlags): Promise<number> {
  const { run, recipe, checkpoint } = await requestEvaluation(path, {
    ...flags,
    by: flags.by?.split(',').map((field) => field.trim()),
  });
  const { signal } = context;
  const notify = (message: string) => void context.stderr.write(`${message}\n`);
  try {
    const host = nodeHost({ signal, notify, threads: flags.threads });
    const { event, episodes } = await context.work.evaluateCheckpoint(recipe, checkpoint, host);
    const now = systemClock.now();
    const file = join(run.path, 'episodes', `evaluate-${timeStamp(now)}.jsonl`);
    await run.writeOtherEpisodes(file, episodes);
    if (flags.json === true) {
      jsonSink(context).write({ ...event, time: now.toISOString(), version: EVENT_VERSION });
    } else {
      const { width } = screenOf(context.stdout, context.environment);
      for (const line of [evaluationLine(event, width), '', ...evaluationLines(event, width)])
        context.stdout.write(`${line}\n`);
      context.stdout.write(`episodes: ${file}\n`);
    }
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    return INTERRUPTED;
  }
}
