/** Runs as tools of a coding agent. All paths lie in one folder; training and stopping need permission. */
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { ArgumentError, RunError } from '@drmas/engine/errors';
import { excerpt } from '@drmas/engine/host';
import { messageText, responseTokens, turnText } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { z } from 'zod';
import { RUNS } from '../../dashboard/report.js';
import { RunCatalog } from '../../dashboard/watch.js';
import { shippedRecipes } from '../../method/recipe-files.js';
import { EPISODES, RunDirectory, readEpisodes, type StoredEpisode, timeStamp } from '../../method/store.js';
import type { ListedRun } from '../../runs/analysis.js';
import type { StartedRuns } from './started-runs.js';

/** A tool: its name, its sentence, its input, and the value that it returns as JSON. */
export interface RunTool {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodObject;
  /** Whether it changes files or processes. */
  readonly changes: boolean;
  call(input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<unknown>;
}

export interface RunToolsOptions {
  /** The folder of all paths. */
  readonly folder: string;
  /** The programs that this server has started. */
  readonly started: StartedRuns;
  /** Whether runs may be started and stopped. */
  readonly allowStart: boolean;
}

const DEFAULT_EPISODES = 4;
const MOST_EPISODES = 20;
/** The longest text of an answer. */
const LONGEST_TEXT = 2000;
const MOST_SETTINGS = 64;

const run = z.string().min(1).max(1000).describe('path of the run, such as runs/first');
const recipe = z.string().min(1).max(1000).describe('a TypeScript file, or the name of a recipe that ships');
// Not @file, which would read any file of the machine.
const setting = z
  .string()
  .max(10_000)
  .regex(/^[A-Za-z][\w.-]*=/, 'expected key=value');
const set = z.array(setting).max(MOST_SETTINGS).default([]).describe('settings to override, such as training.steps=20');
const seed = z.int().min(0).optional().describe('seed of sampling and training');

function tool<Input extends z.ZodObject>(
  name: string,
  description: string,
  input: Input,
  call: (input: z.output<Input>, signal: AbortSignal) => Promise<unknown>,
  changes = false,
): RunTool {
  return { name, description, input, changes, call: async (given, signal) => call(input.parse(given), signal) };
}

/** The tools that a server has. */
export function runTools({ folder, started, allowStart }: RunToolsOptions): RunTool[] {
  const place = (path: string) => placeIn(folder, path);
  const stateOf = async (path: string) => {
    const [listed] = await new RunCatalog(place(path)).refresh();
    if (listed === undefined || listed.state === 'unreadable')
      throw new RunError(`${path} is not a readable run${listed === undefined ? '' : `: ${listed.problem}`}`);
    return listed;
  };
  const recipeOf = (name: string) => (shippedRecipes().includes(name) ? name : place(name));

  const reading = [
    tool(
      'list_runs',
      'Lists the runs of a folder, newest first: recipe, state, steps, first and last score.',
      z.object({ folder: z.string().min(1).max(1000).default(RUNS).describe('folder of runs') }),
      async ({ folder: at }) => {
        const path = place(at);
        if (!(await nodeFiles.exists(path))) return { runs: [] };
        return { runs: (await new RunCatalog(path).refresh()).map((one) => briefly(one)) };
      },
    ),
    tool(
      'run_state',
      'The state of a run: steps, scores, rewards, the last warnings, and why it ended.',
      z.object({ run }),
      async (given) => {
        const listed = await stateOf(given.run);
        const directory = await RunDirectory.open(place(given.run));
        const events = await directory.events();
        const warnings = events.flatMap((event) => (event.type === 'warning' ? [excerpt(event.message, 500)] : []));
        return {
          ...briefly(listed),
          rewards: 'rewards' in listed ? listed.rewards.slice(-20) : [],
          lastWarnings: warnings.slice(-5),
          process: started.stateOf(place(given.run)),
        };
      },
    ),
    tool(
      'compare_runs',
      'Compares two runs: their scores with intervals, and the settings in which they differ.',
      z.object({ one: run, other: run }),
      async ({ one, other }) => {
        const listed = [await stateOf(one), await stateOf(other)].map(briefly);
        const [before = {}, after = {}] = await Promise.all(
          [one, other].map(async (path) => settingsOf((await RunDirectory.open(place(path))).record.resolved)),
        );
        const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
        const differing = keys.filter((key) => before[key] !== after[key]);
        return {
          one: listed[0],
          other: listed[1],
          settings: Object.fromEntries(differing.map((key) => [key, [before[key] ?? null, after[key] ?? null]])),
        };
      },
    ),
    tool(
      'read_episodes',
      'Reads episodes of a run: tasks, turns of all agents, rewards, failures. Without a step the last one.',
      z.object({
        run,
        step: z.int().min(0).optional().describe('training step'),
        evaluation: z.boolean().default(false).describe('episodes of an evaluation instead of training'),
        agent: z.string().max(200).optional().describe('only turns of this agent'),
        task: z.string().max(1000).optional().describe('only this task id'),
        most: z.int().min(1).max(MOST_EPISODES).default(DEFAULT_EPISODES).describe('episodes at most'),
      }),
      async ({ run: path, step, evaluation, agent, task, most }) => {
        const at = join(place(path), EPISODES);
        const prefix = evaluation ? 'evaluation-' : 'step-';
        const names = (await nodeFiles.list(at)).filter((name) => name.startsWith(prefix) && name.endsWith('.jsonl'));
        const steps = names.map((name) => Number(/\d+/.exec(name)?.[0])).sort((a, b) => a - b);
        const chosen = step ?? steps.at(-1);
        const file = names.find((name) => Number(/\d+/.exec(name)?.[0]) === chosen);
        if (file === undefined)
          throw new RunError(
            `${path} has no such episodes; steps with ${prefix}episodes: ${steps.join(', ') || 'none'}`,
          );
        const episodes = await readEpisodes(nodeFiles, join(at, file));
        const wanted = episodes.filter((episode) => task === undefined || episode.task.id === task);
        return {
          file,
          episodes: wanted.length,
          shown: wanted.slice(0, most).map((episode) => shownEpisode(episode, agent)),
        };
      },
    ),
    tool(
      'dry_run',
      'Forecasts a run without training: episodes, tokens, memory. It loads the recipe, which runs its code.',
      z.object({ recipe, set }),
      async (given, signal) => {
        const words = ['plan', recipeOf(given.recipe), '--json', ...given.set.flatMap((one) => ['--set', one])];
        return JSON.parse(await started.finished(words, signal));
      },
    ),
  ];
  if (!allowStart) return reading;
  return [
    ...reading,
    tool(
      'start_run',
      'Starts training a recipe. Returns as soon as the run exists; run_state follows it. The run is interrupted, and can be resumed, when this server ends.',
      z.object({ recipe, set, seed, run: run.optional() }),
      async (given, signal) => {
        const name = basename(given.recipe).replace(/\.\w+$/, '');
        const path = place(given.run ?? join(RUNS, `${name}-${timeStamp(new Date())}`));
        const words = ['train', recipeOf(given.recipe), '--run', path, '--json'];
        if (given.seed !== undefined) words.push('--seed', String(given.seed));
        words.push(...given.set.flatMap((one) => ['--set', one]));
        const { pid } = await started.start(path, words, signal);
        return { run: relative(folder, path), pid };
      },
      true,
    ),
    tool(
      'stop_run',
      'Stops a run that this server started, after a checkpoint; `npx drmas resume` continues it. A run that has not begun leaves nothing.',
      z.object({ run }),
      async (given) => {
        await started.stop(place(given.run));
        if (!existsSync(place(given.run))) return { state: 'stopped', note: 'the run had not begun and left nothing' };
        return briefly(await stateOf(given.run));
      },
      true,
    ),
  ];
}

/** The absolute path of a place in the folder, also behind links. @throws ArgumentError for any other place */
export function placeIn(folder: string, path: string): string {
  const wanted = resolve(folder, path);
  let existing = wanted;
  let rest = '';
  for (;;) {
    try {
      const real = join(realpathSync(existing), rest);
      const inside = relative(realpathSync(folder), real);
      if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) break;
      return wanted;
    } catch {
      rest = join(basename(existing), rest);
      if (dirname(existing) === existing) break;
      existing = dirname(existing);
    }
  }
  throw new ArgumentError(`${excerpt(path)} is outside ${folder}, the folder of this server`);
}

/** The facts of a run without the long list of rewards. */
function briefly(listed: ListedRun): object {
  if (listed.state === 'unreadable') return listed;
  const { rewards: _, ...facts } = listed as typeof listed & { rewards?: unknown };
  return facts;
}

/** Settings by their dotted keys, as JSON. */
function settingsOf(value: unknown, key = ''): Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { [key]: JSON.stringify(value) };
  return Object.assign(
    {},
    ...Object.entries(value).map(([name, inner]) => settingsOf(inner, key === '' ? name : `${key}.${name}`)),
  );
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}...`;
}

/** The words of a turn's last message; empty if the turn keeps none. */
function lastMessage({ messages }: StoredEpisode['turns'][number]): string {
  const last = messages?.at(-1);
  return last === undefined ? '' : messageText({ ...last, content: last.content ?? '' });
}

function shownEpisode({ task, sample, score, outcome, failure, turns }: StoredEpisode, agent: string | undefined) {
  return {
    task: task.id,
    data: textOf(task.data),
    sample,
    reward: score.team,
    agents: score.agents,
    parts: score.parts,
    outcome: textOf(outcome),
    failure: failure === undefined ? null : textOf(`${failure.reason}: ${failure.message}`),
    turns: turns
      .filter((turn) => agent === undefined || turn.agent === agent)
      .map((turn) => ({
        agent: turn.agent,
        question: textOf(lastMessage(turn)),
        text: textOf(turnText({ ...turn, text: turn.text ?? '' })),
        valid: turn.valid,
        tokens: responseTokens({ ...turn, response: turn.response ?? [] }),
        reward: turn.reward,
      })),
  };
}
