import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { LogError, messageOf, RunError } from '../../core/errors.js';
import { codeOf } from '../../platform/node-files.js';
import { RECIPE } from '../../store/run-files.js';
import { collectLog } from '../../studies/inspect/collect-turns.js';
import { comparableEstimator, inspect } from '../../studies/inspect/inspect-log.js';
import { jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { repeated, text, toggle } from '../flags.js';
import { inspectionLines } from '../reporter/inspection-printer.js';
import { screenOf } from '../reporter/screen.js';

export const inspectLog = defineCommand({
  name: 'inspect',
  description: 'say what rewards in a log mean for each estimator: inflated agents, groups that teach nothing',
  details:
    "what the rewards in a run or in anybody's rollout log mean for each estimator: inflated agents, groups that teach nothing. No model needed",
  arguments: [argument('log', "a rollout log (.jsonl, .jsonl.gz, .json), a directory of them, or a run's directory")],
  flags: {
    task: text('field', 'field that names the problem (dots reach inside: task.id)'),
    episode: text('field', 'field that names the episode; without it every row is one'),
    agent: text('field', 'field that names the agent'),
    reward: text('field', "the episode's reward for the row's agent"),
    turn: text('field', 'position of the row in its episode'),
    penalty: text('field', 'what the row pays for itself, taken off its reward'),
    step: text('field', 'training step; rows of different steps are never compared (default: one a file)'),
    estimator: repeated('types', 'estimators to compare, with commas between'),
    json: toggle('print it as JSON'),
  },
  examples: [
    'drmas inspect runs/first',
    'drmas inspect rollouts/12.jsonl',
    'drmas inspect log.jsonl --task prompt_id --episode rollout --agent role --reward score',
  ],
  async run(context, [path], { estimator, json, ...fields }) {
    const estimators = estimator.flatMap((names) => names.split(',')).map(comparableEstimator);
    const log = await collectLog(await logFiles(path), fields);
    const inspection = inspect(log, estimators.length === 0 ? undefined : estimators);
    const { width } = screenOf(context.stdout, context.environment);
    const lines = json === true ? [jsonText(inspection)] : inspectionLines(inspection, path, width);
    context.stdout.write(`${lines.join('\n')}\n`);
    return 0;
  },
});

/**
 * The files of a log: the one that was named, a run's training episodes, or what a directory holds (also in directories
 * below it, as rLLM has one for each step).
 */
async function logFiles(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const below = await readdir(path, { recursive: true });
    const training = below.filter((name) => /^(episodes[/\\])?step-\d+\.jsonl$/.test(name));
    if (training.length === 0) refuseRuns(path, below);
    const logs =
      training.length > 0
        ? training
        : below.filter((name) => /\.(jsonl(\.gz)?|json)$/.test(name) && !/batch_summary\.json$/.test(name));
    if (logs.length > 0) return logs.sort().map((name) => join(path, name));
  } catch (error) {
    if (error instanceof RunError) throw error;
    throw new LogError(codeOf(error) === 'ENOENT' ? 'no such file or directory' : messageOf(error), { file: path });
  }
  throw new LogError('expected a log (.jsonl, .json), found none', { file: path });
}

/** What else lies in a run's directory or a folder of runs is no log. @throws RunError that says what to inspect */
function refuseRuns(path: string, below: readonly string[]): void {
  if (below.includes(RECIPE)) throw new RunError(`${path} has no training episodes yet`);
  const [run] = below
    .filter((name) => basename(name) === RECIPE)
    .map((name) => join(path, dirname(name)))
    .sort();
  if (run !== undefined) throw new RunError(`${path} holds several runs; inspect one of them, such as ${run}`);
}
