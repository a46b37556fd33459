import { basename, join } from 'node:path';
import { type Clock, systemClock } from '../core/clock.js';
import type { Episode } from '../core/episode.js';
import { messageOf, RunError } from '../core/errors.js';
import type { EventBody, MetricSink, RunEvent } from '../core/events.js';
import type { Files } from '../core/files.js';
import { nodeFiles } from '../platform/node-files.js';
import { type Checkpoint, Checkpoints, stepName } from './checkpoint-files.js';
import { type Advantages, storedEpisode, writeEpisodes } from './episode-files.js';
import { EventLog, readEvents } from './event-log.js';
import { parseRecord, type RunRecord } from './run-record.js';

/** The surroundings of a run directory: receivers of its events, the file system and the clock. */
export interface RunDirectoryOptions {
  readonly sinks?: readonly MetricSink[];
  readonly files?: Files;
  readonly clock?: Clock;
}

/** A run on disk: `recipe.json`, `events.jsonl`, `episodes/`, `checkpoints/`. */
export class RunDirectory {
  readonly path: string;
  readonly record: RunRecord;
  readonly #files: Files;
  readonly #options: RunDirectoryOptions;
  readonly #checkpoints: Checkpoints;
  #log: EventLog;

  private constructor(path: string, record: RunRecord, options: RunDirectoryOptions) {
    this.path = path;
    this.record = record;
    this.#options = options;
    this.#files = options.files ?? nodeFiles;
    this.#checkpoints = new Checkpoints(this.#files, join(path, 'checkpoints'));
    this.#log = new EventLog(this.#files, this.#eventsPath, options);
  }

  get name(): string {
    return basename(this.path);
  }

  /**
   * Creates the directory of a new run.
   * @throws RunError when it cannot be written, or exists and is not empty; nothing is overwritten
   */
  static async create(path: string, record: RunRecord, options: RunDirectoryOptions = {}): Promise<RunDirectory> {
    const files = options.files ?? nodeFiles;
    await writing(path, async () => {
      if ((await files.exists(path)) && (await files.list(path)).length > 0) {
        throw new RunError(`${path} exists and is not empty; choose another directory with --run, or resume it`);
      }
      await files.makeDirectory(join(path, 'episodes'));
      await files.makeDirectory(join(path, 'checkpoints'));
      await files.write(join(path, 'recipe.json'), `${JSON.stringify(record, null, 2)}\n`);
    });
    return new RunDirectory(path, record, options);
  }

  /** Opens an existing run for reading. @throws RunError when there is none */
  static async open(path: string, options: RunDirectoryOptions = {}): Promise<RunDirectory> {
    const files = options.files ?? nodeFiles;
    const file = join(path, 'recipe.json');
    const text = await files.readText(file).catch((error: unknown) => {
      throw new RunError(`${path} is not a run: ${messageOf(error)}`);
    });
    return new RunDirectory(path, parseRecord(text, file), options);
  }

  /** Stamps and writes an event, passes it to the sinks, and returns it. */
  emit(event: EventBody): RunEvent {
    return this.#log.emit(event);
  }

  /** Writes an event that is stamped already, such as one of a cached warm start. */
  write(event: RunEvent): void {
    this.#log.write(event);
  }

  /** Reads the events of the log; none before the first. */
  async events(): Promise<RunEvent[]> {
    return (await this.#files.exists(this.#eventsPath)) ? readEvents(this.#files, this.#eventsPath) : [];
  }

  /** Writes `episodes/step-000012.jsonl`. `advantages[e]` has one entry for each turn of episode e. */
  async writeStepEpisodes(
    step: number,
    episodes: readonly Episode[],
    advantages?: readonly Advantages[],
  ): Promise<void> {
    const stored = episodes.map((episode, index) => storedEpisode(episode, advantages?.[index]));
    await writeEpisodes(this.#files, this.stepEpisodesPath(step), stored);
  }

  /** Writes `episodes/evaluation-000060.jsonl`. */
  async writeEvaluationEpisodes(step: number, episodes: readonly Episode[]): Promise<void> {
    await this.writeOtherEpisodes(this.evaluationEpisodesPath(step), episodes);
  }

  /** Writes the episodes of an evaluation outside of the run's course to `path`. */
  async writeOtherEpisodes(path: string, episodes: readonly Episode[]): Promise<void> {
    await writeEpisodes(
      this.#files,
      path,
      episodes.map((episode) => storedEpisode(episode)),
    );
  }

  stepEpisodesPath(step: number): string {
    return join(this.path, 'episodes', `${stepName(step)}.jsonl`);
  }

  evaluationEpisodesPath(step: number): string {
    return join(this.path, 'episodes', `${stepName(step).replace('step', 'evaluation')}.jsonl`);
  }

  latestCheckpoint(): Promise<Checkpoint | undefined> {
    return this.#checkpoints.latest();
  }

  /**
   * Writes `checkpoints/step-000050` atomically from the files that `fill` writes into its directory, then the event.
   */
  async writeCheckpoint(
    step: number,
    fill: (directory: string) => Promise<void>,
    { interrupted = false }: { readonly interrupted?: boolean } = {},
  ): Promise<void> {
    const written = await this.#checkpoints.write(step, { events: this.#log.cursor, interrupted }, fill);
    if (written !== undefined) this.#announce(written);
  }

  /**
   * Takes log and episodes back to the state they had when the checkpoint was written, so that the run goes on as if it
   * had never gone further. Without a checkpoint the run starts from the beginning.
   * @throws CheckpointError when the checkpoint has no valid cursor; RunError when the log is shorter than it says
   */
  async rewind(checkpoint: Checkpoint | undefined): Promise<void> {
    await this.#checkpoints.removeTemporary();
    const { events: cursor, interrupted } = checkpoint
      ? await this.#checkpoints.cursor(checkpoint)
      : { events: { bytes: 0, lines: 0 }, interrupted: false };
    if (await this.#files.exists(this.#eventsPath)) {
      const bytes = await this.#files.size(this.#eventsPath);
      if (bytes < cursor.bytes) {
        throw new RunError(`${this.#eventsPath} has ${bytes} bytes, its checkpoint needs ${cursor.bytes}`);
      }
      await this.#files.truncate(this.#eventsPath, cursor.bytes);
    } else if (cursor.bytes > 0) throw new RunError(`${this.#eventsPath} is missing`);
    this.#log = new EventLog(this.#files, this.#eventsPath, { ...this.#options, cursor });
    await this.#removeEpisodesAfter(checkpoint?.step ?? -1);
    if (checkpoint && !interrupted) this.#announce(checkpoint);
  }

  #announce({ step, directory }: Checkpoint): void {
    this.emit({ type: 'checkpoint', step, path: `checkpoints/${basename(directory)}` });
  }

  /** Notes in recipe.json that the run goes on with changed code. */
  async acceptChanges(codeHash: string, resolved: Record<string, unknown>, step: number): Promise<RunDirectory> {
    const time = (this.#options.clock ?? systemClock).now().toISOString();
    const { record } = this;
    const changed: RunRecord = {
      ...record,
      recipe: { ...record.recipe, codeHash },
      resolved,
      acceptedChanges: [...record.acceptedChanges, { time, codeHash: record.recipe.codeHash, step }],
    };
    await this.#files.write(join(this.path, 'recipe.json'), `${JSON.stringify(changed, null, 2)}\n`);
    return new RunDirectory(this.path, changed, this.#options);
  }

  get #eventsPath(): string {
    return join(this.path, 'events.jsonl');
  }

  async #removeEpisodesAfter(step: number): Promise<void> {
    const directory = join(this.path, 'episodes');
    for (const name of await this.#files.list(directory)) {
      const number = /^(?:step|evaluation)-(\d+)\.jsonl$/.exec(name)?.[1];
      if (number !== undefined && Number(number) > step) await this.#files.remove(join(directory, name));
    }
  }
}

/** The default path of a new run, such as `runs/math-20260131-094501`, with a number behind it where that exists. */
export async function defaultRunPath(recipe: string, options: RunDirectoryOptions = {}): Promise<string> {
  const files = options.files ?? nodeFiles;
  const stamp = timeStamp((options.clock ?? systemClock).now());
  const base = join('runs', `${recipe.replaceAll(/[^A-Za-z0-9_-]+/g, '-')}-${stamp}`);
  for (let number = 1; ; number++) {
    const path = number === 1 ? base : `${base}-${number}`;
    if (!(await files.exists(path))) return path;
  }
}

/** The local time as `20260131-094501`. */
export function timeStamp(now: Date): string {
  const pad = (value: number) => String(value).padStart(2, '0');
  const date = `${now.getFullYear()}${pad(now.getMonth() + 1)}${pad(now.getDate())}`;
  return `${date}-${pad(now.getHours())}${pad(now.getMinutes())}${pad(now.getSeconds())}`;
}

async function writing(path: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (error instanceof RunError) throw error;
    throw new RunError(`the run directory ${path} cannot be written: ${messageOf(error)}`);
  }
}
