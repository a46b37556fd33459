import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { LogError, messageOf, RunError } from '@drmas/engine/errors';
import { codeOf, nodeFiles, pathFault } from '@drmas/engine/platform';
import { changedRecords, missingRun, RECIPE, RunDirectory, requireRun, runsBeside } from '../../method/store.js';
import { collectLog, comparableEstimator, inspect, storedRules } from '../../runs/studies.js';
import { jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { repeated, text, toggle } from '../flags.js';
import { inspectionLines } from '../reporter/inspection-printer.js';
import { screenOf } from '../reporter/screen.js';

export const inspectLog = defineCommand({
  name: 'inspect',
  description: 'analyse the rewards in a log: inflated agents, groups without a learning signal',
  details:
    'reads the rewards of a run, or of the rollout log of another trainer, and shows how the shared statistics of GRPO inflate each agent, the advantages of several estimators, and the groups without a learning signal. It needs no model',
  arguments: [
    argument(
      'log',
      "a rollout log (.jsonl, .jsonl.gz, .json), a directory of them, a run's directory, or a folder of one run",
    ),
  ],
  flags: {
    task: text('field', 'field with the task id (nested fields with dots: task.id)'),
    episode: text('field', 'field with the episode id (default: each row is an episode)'),
    agent: text('field', "field with the agent's name"),
    reward: text('field', "field with the episode's reward for the row's agent"),
    turn: text('field', "field with the row's position in its episode"),
    penalty: text('field', "field with the row's penalty, which is subtracted from its reward"),
    step: text('field', 'field with the training step; rows of one step are compared (default: one step a file)'),
    estimator: repeated('types', 'estimators to compare, separated by commas'),
    json: toggle('print the analysis as JSON'),
  },
  examples: [
    'drmas inspect runs/first',
    'drmas inspect rollouts/12.jsonl',
    'drmas inspect log.jsonl --task prompt_id --episode rollout --agent role --reward score',
  ],
  async run(context, [typed], { estimator, json, ...fields }) {
    const estimators = estimator.flatMap((names) => names.split(',')).map(comparableEstimator);
    const { path, files } = await logAt(typed);
    const run = await runAround(path);
    if (run !== undefined) await requireRun(nodeFiles, run);
    const record = run === undefined ? undefined : await RunDirectory.open(run).catch(() => undefined); // damaged
    const log = await collectLog(files, fields, record && storedRules(record.record.resolved));
    const changed = run === path ? await changedRecords(path) : undefined;
    if (changed !== undefined) context.stderr.write(`warning: ${changed}\n`);
    const inspection = inspect(log, estimators.length === 0 ? undefined : estimators);
    const { width } = screenOf(context.stdout, context.environment);
    const lines = json === true ? [jsonText(inspection)] : inspectionLines(inspection, path, width);
    context.stdout.write(`${lines.join('\n')}\n`);
    return 0;
  },
});

/** The run that the path is, or whose episodes it has. */
async function runAround(path: string): Promise<string | undefined> {
  const places = [path, dirname(path), dirname(dirname(path))];
  const isIn = await Promise.all(places.map((place) => nodeFiles.exists(join(place, RECIPE)).catch(() => false)));
  return places.find((_, i) => isIn[i]);
}

/**
 * The files of a log: a file, a run's training episodes, or the logs below a directory (rLLM has one for each step). In
 * a folder with one run, the place is that run.
 */
async function logAt(path: string): Promise<{ readonly path: string; readonly files: readonly string[] }> {
  try {
    if (!(await stat(path)).isDirectory()) return { path, files: [path] };
    const below = await readdir(path, { recursive: true });
    const training = below.filter((name) => /^(episodes[/\\])?step-\d+\.jsonl$/.test(name));
    const run = training.length === 0 ? onlyRun(path, below) : undefined;
    if (run !== undefined) return await logAt(run);
    const logs =
      training.length > 0
        ? training
        : below.filter((name) => /\.(jsonl(\.gz)?|json)$/.test(name) && !/batch_summary\.json$/.test(name));
    if (logs.length > 0) return { path, files: logs.sort().map((name) => join(path, name)) };
  } catch (error) {
    if (error instanceof RunError || error instanceof LogError) throw error;
    if (codeOf(error) === 'ENOENT' && (await runsBeside(nodeFiles, path)).length > 0)
      throw await missingRun(nodeFiles, path);
    const fault = pathFault(path);
    if (fault !== undefined) throw new LogError(`it ${fault}`, { file: path });
    throw new LogError(codeOf(error) === 'ENOENT' ? 'no such file or directory' : messageOf(error), { file: path });
  }
  throw new LogError('expected a log (.jsonl, .json), found none', { file: path });
}

/**
 * The only run of a folder; undefined for a folder without runs.
 * @throws RunError for a run without episodes, and for a folder of several runs; it names one of them
 */
function onlyRun(path: string, below: readonly string[]): string | undefined {
  if (below.includes(RECIPE)) throw new RunError(`${path} has no training episodes yet`);
  const [run, ...others] = below
    .filter((name) => basename(name) === RECIPE)
    .map((name) => join(path, dirname(name)))
    .sort();
  if (others.length > 0) throw new RunError(`${path} is a folder of runs; inspect one of them, such as ${run}`);
  return run;
}
