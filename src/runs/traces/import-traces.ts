/** Production traces as demonstrations of each agent and as tasks. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, RunError, TaskError } from '../../base/errors.js';
import { mean } from '../../base/math.js';
import { nodeFiles } from '../../base/platform.js';
import { isHeldOut } from '../../teams/tasks.js';
import { type DemonstrationRow, demonstrationRow, writeLines } from './demonstration-rows.js';
import { type ModelCall, type TracedEpisode, tracedEpisodes, type Unread, unreadOf } from './model-calls.js';
import { type Masked, NAMES, type Redact, redaction } from './redact.js';
import { jsonValues, spansOf, type TraceSpan } from './spans.js';

export interface ImportOptions {
  /** The agent of calls that name none. */
  readonly agent?: string | undefined;
  /** Names of agents in traces, and their names in the team. */
  readonly rename?: Readonly<Record<string, string>>;
  /** The score that counts; by default `success`, else the only one. */
  readonly score?: string | undefined;
  /** Traces with a lower score, or with none, become no demonstrations. */
  readonly minScore?: number | undefined;
  /** Changes each text, after secrets and personal data of a fixed form were masked. */
  readonly redact?: Redact | undefined;
  /**
   * The share of the tasks to hold out, chosen by their text. Their rows have the field `split`, `train` or `test`, and
   * calls of held-out tasks become no demonstrations. By default no task is held out.
   */
  readonly holdOut?: number | undefined;
}

/** Tokens and calls of an agent in the traces. */
export interface TracedAgent {
  readonly calls: number;
  readonly demonstrations: number;
  readonly tools: readonly string[];
  readonly models: readonly string[];
  readonly read: number;
  readonly written: number;
}

/** The rows that an import would write, and counts of the rest. Nothing is written yet. */
export interface TraceImport {
  readonly demonstrations: readonly DemonstrationRow[];
  readonly tasks: readonly Readonly<Record<string, unknown>>[];
  readonly agents: Readonly<Record<string, TracedAgent>>;
  readonly traces: { readonly all: number; readonly kept: number; readonly scored: number; readonly mean: number };
  /** The number of held-out tasks; absent if none were requested. */
  readonly heldOut?: number;
  /** The name of the score that counts; absent if traces have none. */
  readonly score?: string;
  /** Masked passages by kind. */
  readonly masked: Readonly<Masked>;
  /** Calls that the redaction left out. */
  readonly dropped: number;
  readonly unread: Unread;
}

const DEMONSTRATIONS = 'demonstrations.jsonl';
const TASKS = 'tasks.jsonl';

/**
 * Reads a file of traces, or all `.json`, `.jsonl` and `.ndjson` files of a folder. Writes nothing.
 * @throws TaskError naming file and line for text that is not JSON, and for traces without a call that can be read;
 *   RunError for a call without an agent, or a score that cannot be chosen
 */
export async function readTraces(path: string, options: ImportOptions = {}): Promise<TraceImport> {
  const spans: TraceSpan[] = [];
  for await (const value of jsonValues(path)) spans.push(...spansOf(value));
  const episodes = tracedEpisodes(spans);
  const readable = episodes.filter(({ calls }) => calls.length > 0);
  if (readable.length === 0) throw new TaskError(noCalls(spans.length), { file: path });
  return { ...importOf(readable, options), unread: unreadOf(episodes) };
}

const noCalls = (spans: number) =>
  spans === 0
    ? 'found no spans: expected OTLP JSON, JSON lines of spans, or an export of Langfuse or Braintrust'
    : `found ${spans} spans and no call of a model with its messages; tracing must record them (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true)`;

function importOf(all: readonly TracedEpisode[], options: ImportOptions): Omit<TraceImport, 'unread'> {
  const score = scoreName(all, options);
  const scoreOf = ({ scores }: TracedEpisode) => (score === undefined ? undefined : scores[score]);
  const { minScore } = options;
  const heldOut = heldOutOf(all, options.holdOut);
  const isGood = (episode: TracedEpisode) =>
    minScore === undefined || (scoreOf(episode) ?? Number.NEGATIVE_INFINITY) >= minScore;
  const kept = all.filter((episode) => isGood(episode) && heldOut?.has(episode) !== true);
  const masked: Masked = {};
  const redacted = redaction(masked, options.redact);
  let dropped = 0;
  const demonstrations = kept.flatMap(({ calls }) =>
    calls.flatMap((call) => {
      const row = redacted(demonstrationRow({ ...call, agent: nameOf(call, options) }), NAMES);
      if (row === undefined) dropped++;
      return row ?? [];
    }),
  );
  const tasks = all.flatMap((episode) => {
    const { id, ...row } = taskRow(episode, scoreOf(episode), isGood(episode));
    const split = heldOut && { split: heldOut.has(episode) ? 'test' : 'train' };
    const fields = redacted(row, new Set());
    return fields === undefined ? [] : [{ id, ...fields, ...split }];
  });
  const scores = all.flatMap((episode) => scoreOf(episode) ?? []);
  return {
    demonstrations,
    tasks,
    masked,
    dropped,
    agents: agentsIn(all, demonstrations, options),
    traces: { all: all.length, kept: kept.length, scored: scores.length, mean: scores.length === 0 ? 0 : mean(scores) },
    ...(heldOut === undefined
      ? {}
      : { heldOut: tasks.filter((task) => 'split' in task && task.split === 'test').length }),
    ...(score === undefined ? {} : { score }),
  };
}

/**
 * The traces of held-out tasks: equal tasks stay together, and if there are two tasks, one is held out and one is not.
 * @throws RunError if all traces have the same task
 */
function heldOutOf(all: readonly TracedEpisode[], share: number | undefined): ReadonlySet<TracedEpisode> | undefined {
  if (share === undefined) return undefined;
  const textOf = (episode: TracedEpisode) => JSON.stringify(episode.task ?? questionOf(episode));
  const texts = [...new Set(all.map(textOf))];
  if (texts.length < 2)
    throw new RunError('all traces have the same task, so none can be held out; expected more traces');
  const chosen = texts.filter((text) => isHeldOut(text, share));
  const test = new Set(
    chosen.length === 0 ? texts.slice(-1) : chosen.length === texts.length ? chosen.slice(1) : chosen,
  );
  return new Set(all.filter((episode) => test.has(textOf(episode))));
}

/** @throws RunError for a score that no trace has, or when one has to be chosen */
function scoreName(all: readonly TracedEpisode[], { score, minScore }: ImportOptions): string | undefined {
  const names = [...new Set(all.flatMap(({ scores }) => Object.keys(scores)))].sort();
  const listed = names.length === 0 ? 'no scores' : `the scores ${names.join(', ')}`;
  if (score !== undefined && !names.includes(score))
    throw new RunError(`no trace has the score '${score}'; they have ${listed}`);
  const chosen = score ?? (names.includes('success') ? 'success' : names.length === 1 ? names[0] : undefined);
  if (minScore !== undefined && chosen === undefined)
    throw new RunError(
      names.length === 0
        ? '--min-score: the traces have no scores; leave --min-score out, or record a score (`drmas.success` of a span)'
        : `--min-score: the traces have ${listed}; name the score that counts with --score`,
    );
  return chosen;
}

/** @throws RunError if the call names no agent, or one whose name a team cannot have */
function nameOf({ agent }: ModelCall, { agent: ofAll, rename = {} }: ImportOptions): string {
  const name = agent === undefined ? ofAll : (rename[agent] ?? agent);
  if (name === undefined)
    throw new RunError('a call names no agent: --agent gives its name (AI SDK: `id` of the agent, or `functionId`)');
  if (!/^[A-Za-z][A-Za-z0-9_-]*$/.test(name))
    throw new RunError(`no team can have an agent '${name}': --rename '${name}=NAME' gives it another name`);
  return name;
}

const questionOf = ({ calls }: Pick<TracedEpisode, 'calls'>) =>
  calls[0]?.messages.find(({ role }) => role === 'user')?.content ?? '';

/** The task of a trace: the data of its input, or the first message of a user and the last answer. */
function taskRow({ trace, calls, task }: TracedEpisode, score: number | undefined, kept: boolean) {
  const question = questionOf({ calls });
  const answer = calls.at(-1)?.answer.content ?? '';
  return {
    id: trace,
    ...(task ?? { question, ...(kept ? { answer } : {}) }),
    ...(score === undefined ? {} : { score }),
  };
}

function agentsIn(
  all: readonly TracedEpisode[],
  rows: readonly DemonstrationRow[],
  options: ImportOptions,
): Record<string, TracedAgent> {
  const calls = all.flatMap((episode) => episode.calls.map((call) => ({ ...call, agent: nameOf(call, options) })));
  const names = [...new Set(calls.map(({ agent }) => agent))].sort();
  return Object.fromEntries(
    names.map((name) => {
      const ofAgent = calls.filter(({ agent }) => agent === name);
      const tokens = (side: 'read' | 'written') => ofAgent.reduce((sum, call) => sum + call.tokens[side], 0);
      return [
        name,
        {
          calls: ofAgent.length,
          demonstrations: rows.filter(({ agent }) => agent === name).length,
          tools: [...new Set(ofAgent.flatMap(({ tools = [] }) => tools.map((tool) => tool.name)))].sort(),
          models: [...new Set(ofAgent.flatMap(({ model }) => model ?? []))].sort(),
          read: tokens('read'),
          written: tokens('written'),
        },
      ];
    }),
  );
}

/**
 * Writes the rows as new files of a folder. @returns The paths
 * @throws RunError if one of the files exists
 */
export async function writeImport({ demonstrations, tasks }: TraceImport, folder: string): Promise<readonly string[]> {
  await mkdir(folder, { recursive: true });
  const files = [
    [join(folder, DEMONSTRATIONS), demonstrations],
    [join(folder, TASKS), tasks],
  ] as const;
  for (const [path] of files)
    if (await nodeFiles.exists(path)) throw new RunError(`${path} exists; choose another folder with --out`);
  for (const [path, rows] of files) await writeLines(path, rows);
  return files.map(([path]) => path);
}

/** Writes demonstrations over those of an import. @throws RunError if they cannot be written */
export async function rewriteDemonstrations(rows: readonly DemonstrationRow[], folder: string): Promise<void> {
  const path = join(folder, DEMONSTRATIONS);
  await nodeFiles.remove(path);
  await writeLines(path, rows);
}

/** The traced team as `drmas learn` compares it: scored traces with their mean score, and tokens an episode. */
const tracedTeam = z.object({
  scored: z.number(),
  score: z.number(),
  read: z.number(),
  written: z.number(),
  /** The prices of a million tokens of its model. */
  price: z.object({ read: z.number(), write: z.number() }).optional(),
});

export type TracedTeam = z.infer<typeof tracedTeam>;

const TEAM = 'traced-team.json';

/**
 * Writes what `drmas learn` compares with, beside its recipe, so that a resumed run can print the comparison too.
 * @returns The path of the new file
 */
export async function writeTracedTeam(
  { traces, agents }: TraceImport,
  price: TracedTeam['price'],
  folder: string,
): Promise<string> {
  const perEpisode = (side: 'read' | 'written') =>
    Object.values(agents).reduce((sum, agent) => sum + agent[side], 0) / traces.all;
  const { scored, mean: score } = traces;
  const team: TracedTeam = { scored, score, read: perEpisode('read'), written: perEpisode('written'), price };
  const path = join(folder, TEAM);
  await nodeFiles.write(path, `${JSON.stringify(team)}\n`);
  return path;
}

/** The traced team beside a recipe; undefined if `drmas learn` did not write the recipe. @throws RunError */
export async function readTracedTeam(folder: string): Promise<TracedTeam | undefined> {
  const path = join(folder, TEAM);
  if (!(await nodeFiles.exists(path))) return undefined;
  try {
    return tracedTeam.parse(JSON.parse(await nodeFiles.readText(path)));
  } catch (error) {
    throw new RunError(`${path} is not as drmas learn wrote it: ${messageOf(error)}`);
  }
}
