/** Production traces as demonstrations of each agent and as tasks. */
import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { exactJson, messageOf, ownValue, RunError, suggestion, TaskError } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import { z } from 'zod';
import { isHeldOut } from '../../teams/tasks.js';
import { type DemonstrationRow, demonstrationRow, LineFile } from './demonstration-rows.js';
import { type ModelCall, type TracedEpisode, tracedEpisode } from './model-calls.js';
import { type Masked, NAMES, type Redact, redaction } from './redact.js';
import { spansOf } from './spans.js';
import { TextLimit } from './text-limit.js';
import { traceValues } from './trace-files.js';
import { TraceStore } from './trace-store.js';
import { type TracePlace, type Unread, UnreadCounts, unreadTexts } from './unread.js';

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
   * The share of the tasks to hold out, chosen by their text. Their rows have the field `split`, `train` or `test`,
   * also if an earlier import chose otherwise, and calls of held-out tasks become no demonstrations. By default no task
   * is held out.
   */
  readonly holdOut?: number | undefined;
  /** Stops the import early, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface TracedAgent {
  readonly calls: number;
  readonly demonstrations: number;
  readonly tools: readonly string[];
  readonly models: readonly string[];
  readonly read: number;
  readonly written: number;
}

export interface TraceImport {
  readonly demonstrations: number;
  readonly example?: DemonstrationRow;
  readonly tasks: number;
  readonly fields: readonly string[];
  readonly agents: Readonly<Record<string, TracedAgent>>;
  readonly traces: { readonly all: number; readonly kept: number; readonly scored: number; readonly mean: number };
  /** The number of held-out tasks; absent if none were requested. */
  readonly heldOut?: number;
  /** The name of the score that counts; absent if traces have none. */
  readonly score?: string;
  readonly masked: Readonly<Masked>;
  /** Calls that the redaction left out. */
  readonly dropped: number;
  /** Tasks that the redaction left out. */
  readonly droppedTasks: number;
  readonly unread: Unread;
}

const DEMONSTRATIONS = 'demonstrations.jsonl';
const TASKS = 'tasks.jsonl';

export const importFiles = (folder: string): string[] => [DEMONSTRATIONS, TASKS].map((name) => join(folder, name));

/**
 * Reads a file of traces, or all `.json`, `.jsonl` and `.ndjson` files of a folder, and counts what becomes of them.
 * Memory holds some traces at a time, also of larger files.
 * @param folder Where to write the demonstrations and the tasks, as new files. Default: nothing is written
 * @throws TaskError if no call can be read; RunError for a call without an agent, a score that cannot be chosen, or a
 *   file that exists; the signal's reason. Then no file is left
 */
export async function importTraces(path: string, options: ImportOptions = {}, folder?: string): Promise<TraceImport> {
  const files = folder === undefined ? [] : importFiles(folder);
  for (const file of files)
    if (await nodeFiles.exists(file)) throw new RunError(`${file} exists; choose another folder with --out`);
  const unread = new UnreadCounts();
  const store = new TraceStore(options.signal);
  const isNew = folder !== undefined && !(await nodeFiles.exists(folder));
  const written: LineFile[] = [];
  try {
    for (const file of files) written.push(await LineFile.create(file)); // before the reading: it may take an hour
    let spans = 0;
    const limit = new TextLimit();
    for await (const value of traceValues(path, unread)) {
      const read = spansOf(value.value, value, unread);
      spans += read.length;
      for (const span of read) {
        limit.see(span);
        await store.add(span, value.length / read.length);
      }
    }
    const survey = await surveyOf(store, options, unread, limit);
    if (survey.readable === 0) throw new TaskError(noCalls(spans, unread.all), { file: path });
    const score = scoreName(survey.scores, options);
    const rows = new ImportedRows(options, score, survey.isHeldOut, unread);
    const [demonstrations, tasks] = written;
    for await (const [trace, ofTrace] of store.traces()) {
      const made = rows.of(tracedEpisode(trace, ofTrace, limit.length));
      for (const row of made.demonstrations) await demonstrations?.add(row);
      if (made.task !== undefined) await tasks?.add(made.task);
    }
    await LineFile.keep(...written);
    return { ...rows.summary, unread: unread.all };
  } catch (error) {
    await LineFile.discard(...written);
    if (isNew) await rmdir(folder).catch(() => {}); // of others it may have files by now
    throw error;
  } finally {
    await store.dispose();
  }
}

const EXPORTS = 'Langfuse, Braintrust, Phoenix, LangSmith, MLflow, Jaeger or Zipkin';

function noCalls(spans: number, unread: Unread): string {
  const parts = unreadTexts(unread);
  const seen = parts.length === 0 ? '' : `; not read: ${parts.join('; ')}`;
  return spans === 0
    ? `found no spans: expected OTLP JSON, JSON lines of spans, or an export of ${EXPORTS}${seen}`
    : `found ${spans} spans and no call of a model with its messages${seen}`;
}

/** The facts that are gathered from all traces before one becomes a row. */
interface Survey {
  readonly readable: number;
  readonly scores: ReadonlySet<string>;
  readonly isHeldOut?: (episode: TracedEpisode) => boolean;
}

/**
 * @throws RunError if a call has no agent, if no call has an agent that is renamed, or if no task can be held out: all
 *   are equal, or one has a `split`
 */
async function surveyOf(
  store: TraceStore,
  options: ImportOptions,
  unread: UnreadCounts,
  limit: TextLimit,
): Promise<Survey> {
  const { holdOut } = options;
  const scores = new Set<string>();
  const agents = new Set<string>();
  let readable = 0;
  let first: string | undefined;
  let [isOther, isSomeIn, isSomeOut] = [false, false, false];
  for await (const [trace, spans] of store.traces()) {
    const episode = tracedEpisode(trace, spans, limit.length);
    for (const { reason, place } of episode.unread) unread.add(reason, place);
    if (episode.calls.length === 0) continue;
    readable++;
    for (const name of Object.keys(episode.scores)) scores.add(name);
    for (const call of episode.calls) {
      nameOf(call, options);
      if (call.agent !== undefined) agents.add(call.agent);
    }
    if (holdOut === undefined) continue;
    const task = taskText(episode);
    requireFreeSplit(episode);
    first ??= task;
    isOther ||= task !== first;
    const isOut = isHeldOut(task, holdOut);
    isSomeOut ||= isOut;
    isSomeIn ||= !isOut;
  }
  if (readable > 0) requireNamed(Object.keys(options.rename ?? {}), [...agents]);
  if (holdOut === undefined || readable === 0) return { readable, scores };
  if (!isOther) throw new RunError('all traces have the same task, so none can be held out; expected more traces');
  // If all tasks are on one side, the first changes sides.
  const isExchanged = !isSomeIn || !isSomeOut;
  return {
    readable,
    scores,
    isHeldOut: (episode) => {
      const task = taskText(episode);
      return isHeldOut(task, holdOut) !== (isExchanged && task === first);
    },
  };
}

/** @throws RunError for a new name of an agent that no call has */
function requireNamed(renamed: readonly string[], agents: readonly string[]): void {
  const missing = renamed.find((name) => !agents.includes(name));
  if (missing === undefined) return;
  throw new RunError(`--rename: no call has the agent '${missing}'${suggestion(missing, agents)}`);
}

/** @throws RunError for a task with a field `split` of another meaning than that of the import */
function requireFreeSplit({ trace, task }: TracedEpisode): void {
  const split = task?.split ?? 'train';
  if (split !== 'train' && split !== 'test')
    throw new RunError(
      `the task of the trace ${trace} has a field 'split' of its own, ${exactJson(split).slice(0, 100)}, in which drmas marks held-out tasks: give it another name in the traces`,
    );
}

/** Equal tasks are held out together. */
const taskText = (episode: TracedEpisode) => exactJson(episode.task ?? questionOf(episode));

class ImportedRows {
  readonly #options: ImportOptions;
  readonly #score: string | undefined;
  readonly #isHeldOut: Survey['isHeldOut'];
  readonly #unread: UnreadCounts;
  readonly #masked: Masked = {};
  readonly #redacted: ReturnType<typeof redaction>;
  readonly #agents = new Map<string, AgentCounts>();
  #counts = {
    all: 0,
    kept: 0,
    scored: 0,
    scores: 0,
    demonstrations: 0,
    tasks: 0,
    heldOut: 0,
    dropped: 0,
    droppedTasks: 0,
  };
  #example: DemonstrationRow | undefined;
  #fields: readonly string[] = [];

  constructor(options: ImportOptions, score: string | undefined, isHeldOut: Survey['isHeldOut'], unread: UnreadCounts) {
    this.#options = options;
    this.#score = score;
    this.#isHeldOut = isHeldOut;
    this.#unread = unread;
    this.#redacted = redaction(this.#masked, options.redact);
  }

  /** The rows of a trace; none if no call can be read. */
  of(episode: TracedEpisode): { readonly demonstrations: readonly DemonstrationRow[]; readonly task?: object } {
    if (episode.calls.length === 0) return { demonstrations: [] };
    const { minScore } = this.#options;
    const score = this.#score === undefined ? undefined : ownValue(episode.scores, this.#score);
    const isGood = minScore === undefined || (score ?? Number.NEGATIVE_INFINITY) >= minScore;
    const isOut = this.#isHeldOut?.(episode);
    const counts = this.#counts;
    counts.all++;
    if (score !== undefined) {
      counts.scored++;
      counts.scores += score;
    }
    const isKept = isGood && isOut !== true;
    if (isKept) counts.kept++;
    const demonstrations = episode.calls.flatMap((call) => this.#demonstration(call, isKept));
    const { id, ...row } = taskRow(episode, score, isGood);
    // The id of a trace tells of no person; a field of the task's data with this name may.
    const fields = this.#redacted(episode.task?.id === undefined ? row : { id, ...row }, new Set());
    if (fields === 'deep') this.#addDeep(episode.place);
    if (fields === 'redacted') counts.droppedTasks++;
    if (typeof fields === 'string') return { demonstrations };
    const task = { id, ...fields, ...(isOut === undefined ? {} : { split: isOut ? 'test' : 'train' }) };
    if (counts.tasks++ === 0) this.#fields = Object.keys(task);
    if (isOut === true) counts.heldOut++;
    return { demonstrations, task };
  }

  #demonstration(call: ModelCall, isKept: boolean): DemonstrationRow[] {
    const agent = nameOf(call, this.#options);
    const counted = this.#agents.get(agent) ?? { calls: 0, demonstrations: 0, read: 0, written: 0, ...newSets() };
    this.#agents.set(agent, counted);
    counted.calls++;
    counted.read += call.tokens.read;
    counted.written += call.tokens.written;
    for (const { name } of call.tools ?? []) counted.tools.add(name);
    if (call.model !== undefined) counted.models.add(call.model);
    if (!isKept) return [];
    const row = this.#redacted(demonstrationRow({ ...call, agent }), NAMES);
    if (row === 'deep') this.#addDeep(call.place);
    if (row === 'redacted') this.#counts.dropped++;
    if (typeof row === 'string') return [];
    this.#example ??= row;
    counted.demonstrations++;
    this.#counts.demonstrations++;
    return [row];
  }

  #addDeep(place: TracePlace | undefined): void {
    if (place !== undefined) this.#unread.add('deep', place);
  }

  get summary(): Omit<TraceImport, 'unread'> {
    const { all, kept, scored, scores, demonstrations, tasks, heldOut, dropped, droppedTasks } = this.#counts;
    const agents = [...this.#agents].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      demonstrations,
      ...(this.#example === undefined ? {} : { example: this.#example }),
      tasks,
      fields: this.#fields,
      masked: this.#masked,
      dropped,
      droppedTasks,
      agents: Object.fromEntries(
        agents.map(([name, { tools, models, ...counts }]) => [
          name,
          { ...counts, tools: [...tools].sort(), models: [...models].sort() },
        ]),
      ),
      traces: { all, kept, scored, mean: scored === 0 ? 0 : scores / scored },
      ...(this.#isHeldOut === undefined ? {} : { heldOut }),
      ...(this.#score === undefined ? {} : { score: this.#score }),
    };
  }
}

interface AgentCounts {
  calls: number;
  demonstrations: number;
  read: number;
  written: number;
  readonly tools: Set<string>;
  readonly models: Set<string>;
}

const newSets = () => ({ tools: new Set<string>(), models: new Set<string>() });

/** @throws RunError for a score that no trace has, or when one has to be chosen */
function scoreName(scores: ReadonlySet<string>, { score, minScore }: ImportOptions): string | undefined {
  const names = [...scores].sort();
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
  const name = agent === undefined ? ofAll : (ownValue(rename, agent) ?? agent);
  if (name === undefined)
    throw new RunError('a call names no agent: --agent gives its name (AI SDK: `functionId` of its telemetry)');
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
    ...(score === undefined || task?.score !== undefined ? {} : { score }),
  };
}

/**
 * Changes the demonstrations of an import, one after another. The new file takes the place of the old one at the end.
 * @throws RunError if it cannot be written
 */
export async function rewriteDemonstrations(
  folder: string,
  change: (row: DemonstrationRow) => DemonstrationRow,
): Promise<void> {
  const path = join(folder, DEMONSTRATIONS);
  const rows = await LineFile.create(path, { replaces: true });
  try {
    for await (const { value } of traceValues(path, new UnreadCounts()))
      await rows.add(change(value as DemonstrationRow));
  } catch (error) {
    await LineFile.discard(rows);
    throw error;
  }
  await LineFile.keep(rows);
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
  await nodeFiles.replace(path, `${JSON.stringify(team)}\n`);
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
