import { join } from 'node:path';
import { systemClock } from '../../core/clock.js';
import { EVENT_VERSION } from '../../core/events.js';
import { evaluateWith } from '../../run/api.js';
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
  const { by, json, ...options } = flags;
  const { signal } = context;
  try {
    const { event, episodes, log } = await evaluateWith(context.work, path, {
      ...options,
      ...(by === undefined ? {} : { by: by.split(',').map((field) => field.trim()) }),
      signal,
      onNotice: (message) => void context.stderr.write(`${message}\n`),
    });
    const now = systemClock.now();
    const file = join(log.path, 'episodes', `evaluate-${timeStamp(now)}.jsonl`);
    await log.writeOtherEpisodes(file, episodes);
    if (json === true) {
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
