import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { LogError, messageOf } from '../../core/errors.js';
import { codeOf } from '../../platform/node-files.js';
import { collectLog } from '../../studies/inspect/collect-turns.js';
import { comparableEstimator, inspect } from '../../studies/inspect/inspect-log.js';
import type { Fields } from '../../studies/inspect/log-layouts.js';
import type { CommandContext } from '../command-context.js';
import { inspectionLines } from '../reporter/inspection-printer.js';
import { screenOf } from '../reporter/screen.js';

export interface InspectFlags extends Partial<Omit<Fields, 'reward' | 'advantage'>> {
  readonly reward?: string;
  readonly estimator: readonly string[];
  readonly json?: boolean;
}

/** `drmas inspect <log>`: what the rewards in anybody's rollout log say about estimators. No model is needed. */
export async function inspectCommand(context: CommandContext, path: string, flags: InspectFlags): Promise<number> {
  const { estimator, json, ...fields } = flags;
  const estimators = estimator.flatMap((names) => names.split(',')).map(comparableEstimator);
  const log = await collectLog(await logFiles(path), fields);
  const inspection = inspect(log, estimators.length === 0 ? undefined : estimators);
  const { width } = screenOf(context.stdout, context.environment);
  const lines = json === true ? [JSON.stringify(inspection)] : inspectionLines(inspection, path, width);
  context.stdout.write(`${lines.join('\n')}\n`);
  return 0;
}

/**
 * The files of a log: the one that was named, a run's training episodes, or what a directory holds (also in directories below
 * it, as rLLM has one for each step).
 */
async function logFiles(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const below = await readdir(path, { recursive: true });
    const training = below.filter((name) => /^(episodes[/\\])?step-\d+\.jsonl$/.test(name));
    const logs =
      training.length > 0
        ? training
        : below.filter((name) => /\.(jsonl(\.gz)?|json)$/.test(name) && !/batch_summary\.json$/.test(name));
    if (logs.length > 0) return logs.sort().map((name) => join(path, name));
  } catch (error) {
    throw new LogError(codeOf(error) === 'ENOENT' ? 'no such file or directory' : messageOf(error), { file: path });
  }
  throw new LogError('expected a log (.jsonl, .json), found none', { file: path });
}
