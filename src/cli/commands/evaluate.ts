import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../core/clock.js';
import { RunError } from '../../core/errors.js';
import { EVENT_VERSION } from '../../core/events.js';
import { loadRecipe } from '../../recipe/load.js';
import { resolveRecipe } from '../../recipe/resolve.js';
import { RunDirectory, timeStamp } from '../../runs/run-directory.js';
import { type CommandContext, INTERRUPTED, jsonSink } from '../context.js';
import { evaluationLine } from '../reporter/progress.js';
import { screenOf } from '../reporter/screen.js';

export interface EvaluateFlags {
  readonly set: readonly string[];
  readonly samples?: number;
  readonly tasks?: number;
  readonly threads?: number;
  readonly json?: boolean;
}

/** `drmas evaluate <run>`: plays held-out tasks with the run's last checkpoint and keeps the episodes beside the others. */
export async function evaluateCommand(context: CommandContext, path: string, flags: EvaluateFlags): Promise<number> {
  const run = await RunDirectory.open(path);
  const { source, overrides } = run.record.recipe;
  const loaded = await loadRecipe(source);
  const counts = [
    ...(flags.samples === undefined ? [] : [`evaluation.samples=${flags.samples}`]),
    ...(flags.tasks === undefined ? [] : [`evaluation.tasks=${flags.tasks}`]),
  ];
  const recipe = resolveRecipe(loaded.definition, {
    overrides: [...overrides, ...flags.set, ...counts],
    name: loaded.name,
  });
  const checkpoint = await run.latestCheckpoint();
  if (checkpoint === undefined) throw new RunError(`${path} has no checkpoint to evaluate`);
  const { signal } = context;
  const onNotice = (message: string) => void context.stderr.write(`${message}\n`);
  try {
    const options = { signal, onNotice, threads: flags.threads ?? availableParallelism() };
    const { event, episodes } = await context.work.evaluateCheckpoint(recipe, checkpoint, options);
    const now = systemClock.now();
    const file = join(run.path, 'episodes', `evaluate-${timeStamp(now)}.jsonl`);
    await run.writeOtherEpisodes(file, episodes);
    if (flags.json === true) {
      jsonSink(context).write({ ...event, time: now.toISOString(), version: EVENT_VERSION });
    } else {
      context.stdout.write(`${evaluationLine(event, screenOf(context.stdout, context.environment).width)}\n`);
      context.stdout.write(`episodes: ${file}\n`);
    }
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    return INTERRUPTED;
  }
}
