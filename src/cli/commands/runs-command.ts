import { messageOf } from '@drmas/engine/errors';
import type { Headline } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { findRuns, RUNS, runState } from '../../dashboard/report.js';
import { RunDirectory } from '../../method/store.js';
import { type RunFacts, RunFactsReader, type RunState, type ScorePoint } from '../../runs/analysis.js';
import { jsonText } from '../command-context.js';
import { defineCommand, optionalArgument } from '../define-command.js';
import { toggle } from '../flags.js';
import { type Screen, screenOf, tone } from '../reporter/screen.js';
import { fixed, nearPath, percent, significant, visible, wrap } from '../reporter/text-layout.js';

/** A run in the list; null for facts that the run does not have. */
interface RunRow
  extends Pick<
    RunFacts,
    'recipe' | 'started' | 'steps' | 'plannedSteps' | 'first' | 'last' | 'headline' | 'estimator' | 'seed'
  > {
  readonly path: string;
  readonly state: RunState;
}

/** A directory without a run, or with a damaged one. */
interface UnreadableRow {
  readonly path: string;
  readonly state: 'unreadable';
  readonly problem: string;
}

export const runs = defineCommand({
  name: 'runs',
  description: 'list the runs in a folder: state, steps, scores',
  details:
    'lists the runs in `runs/`, or in another folder, newest first: recipe, state, steps, first and last score with its interval, estimator, seed',
  arguments: [optionalArgument('folder', `folder of runs (default: ${RUNS})`)],
  flags: { json: toggle('print the runs as JSON') },
  examples: ['drmas runs', 'drmas runs experiments --json'],
  async run(context, [folder], flags) {
    const listed: Awaited<ReturnType<typeof listedRun>>[] = [];
    // One after another, since each has all events of a run in memory.
    for (const path of await runPaths(folder)) listed.push(await listedRun(path));
    const newestFirst = listed.sort((a, b) => timeOf(b).localeCompare(timeOf(a)) || a.path.localeCompare(b.path));
    if (flags.json === true) {
      context.stdout.write(`${jsonText({ type: 'runs', runs: newestFirst })}\n`);
      return 0;
    }
    const screen = screenOf(context.stdout, context.environment);
    const lines = newestFirst.flatMap((run) => runLines(run, screen));
    if (lines.length === 0) lines.push(`no runs in ${folder ?? RUNS}`);
    for (const line of lines) context.stdout.write(`${line}\n`);
    return 0;
  },
});

/**
 * The run directories in a folder, also inside ablations; the folder itself if it is a run.
 * @throws RunError when the folder was named and cannot be read
 */
async function runPaths(folder: string | undefined): Promise<string[]> {
  if (folder === undefined && !(await nodeFiles.exists(RUNS))) return [];
  return (await findRuns(folder ?? RUNS)).runs.map((run) => run.path);
}

async function listedRun(path: string): Promise<RunRow | UnreadableRow> {
  try {
    const directory = await RunDirectory.open(path);
    const facts = new RunFactsReader(directory.record.resolved);
    for (const event of await directory.events()) facts.add(event);
    const { recipe, started, steps, plannedSteps, first, last, headline, estimator, seed } = facts.facts;
    return {
      path: nearPath(path),
      recipe,
      started,
      state: await runState(path, facts.facts),
      steps,
      plannedSteps,
      first,
      last,
      headline,
      estimator,
      seed,
    };
  } catch (error) {
    return { path: nearPath(path), state: 'unreadable', problem: messageOf(error) };
  }
}

/** The sort key. Runs that never started come last. */
const timeOf = (run: RunRow | UnreadableRow) => ('started' in run ? (run.started ?? '') : '');

const tones = {
  completed: 'green',
  stopped: 'yellow',
  failed: 'red',
  running: 'green',
  interrupted: 'yellow',
  unreadable: 'red',
} as const;

/** The lines of a run: name and state, then its facts, wrapped at the width. */
function runLines(run: RunRow | UnreadableRow, screen: Screen): string[] {
  const { width } = screen;
  const steps = 'steps' in run ? `, ${run.steps}${run.plannedSteps === null ? '' : `/${run.plannedSteps}`} steps` : '';
  const path = visible(run.path);
  const fits = path.length + 2 + run.state.length + steps.length <= width;
  const state = tone(screen, tones[run.state], run.state) + steps;
  const name = wrap(path, width).map((line) => tone(screen, 'bold', line));
  const head = fits ? [`${name.join('')}  ${state}`] : [...name, `  ${state}`];
  const below = wrap(visible(run.state === 'unreadable' ? run.problem : factsText(run)), width - 2);
  return [...head, ...below.map((line) => `  ${line}`)];
}

function factsText({ recipe, started, first, last, headline, estimator, seed }: RunRow): string {
  const facts = [
    recipe,
    estimator,
    seed === null ? null : `seed ${seed}`,
    started === null ? null : localTime(started),
  ];
  const text = facts.filter((fact) => fact !== null).join(', ');
  return `${scoreText(first, last, headline)}; ${text}`;
}

function scoreText(first: ScorePoint | null, last: ScorePoint | null, headline: Headline): string {
  if (first === null || last === null) return 'no score yet';
  if (headline === 'reward') {
    const [before, after] = [first, last].map(({ reward }) => significant(reward));
    return `reward ${first.step === last.step ? after : `${before} -> ${after}`}`;
  }
  const points = (fraction: number) => fixed(100 * fraction, 1);
  const end = `${percent(last.averageAtK)} [${points(last.low)}, ${points(last.high)}]`;
  return first.step === last.step ? end : `${percent(first.averageAtK)} -> ${end}`;
}

/** An ISO time as local time, `2026-01-31 09:45`. */
function localTime(iso: string): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  const pad = (value: number) => String(value).padStart(2, '0');
  const date = `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  return `${date} ${pad(time.getHours())}:${pad(time.getMinutes())}`;
}
