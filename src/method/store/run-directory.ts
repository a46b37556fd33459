import { basename, join } from 'node:path';
import { ChainedFile, removeTemporary, requireWhole } from '@drmas/engine/disk';
import { isObject, messageOf, RunError } from '@drmas/engine/errors';
import type { EventBody, RunEvent } from '@drmas/engine/events';
import { type Clock, type Files, type RunListener, systemClock } from '@drmas/engine/host';
import type { Episode, Turn } from '@drmas/engine/nouns';
import { codeOf, nodeFiles } from '@drmas/engine/platform';
import { type Checkpoint, Checkpoints, stepName } from './checkpoint-files.js';
import {
  damagedEpisodes,
  type EpisodeAdvantages,
  removeEpisodesAfter,
  type StoredEpisode,
  storedEpisode,
  type UpdatedTokens,
  writeEpisodes,
  writeNewEpisodes,
} from './episode-files.js';
import { EventLog, readEvents } from './event-log.js';
import { lockRun, type RunLock, requireOwnFiles } from './run-lock.js';
import {
  CHECKPOINTS,
  DIGESTS,
  EPISODES,
  EVENTS,
  notARun,
  RECIPE,
  REFERENCES,
  requireFree,
  writing,
} from './run-path.js';
import { changedRecord, formatRecord, isAsWritten, parseRecord, type RunRecord } from './run-record.js';

export interface RunDirectoryOptions {
  readonly listeners?: readonly RunListener[];
  readonly files?: Files;
  readonly clock?: Clock;
  /** drmas awaits it after it has written a checkpoint, before the checkpoint's event. */
  readonly onCheckpoint?: (() => Promise<void>) | undefined;
}

/** A run on disk: `recipe.json`, `events.jsonl`, `episodes/`, `checkpoints/`. */
export class RunDirectory {
  readonly path: string;
  #record: RunRecord;
  #lock: RunLock | undefined;
  readonly #files: Files;
  readonly #options: RunDirectoryOptions;
  readonly #eventsPath: string;
  readonly #checkpoints: Checkpoints;
  #log: EventLog;
  #digests: ChainedFile;
  /** The changes on disk of a `rewind` that `begin` has still to make. */
  #rewinding: (() => Promise<void>) | undefined;

  private constructor(path: string, record: RunRecord, options: RunDirectoryOptions) {
    this.path = path;
    this.#eventsPath = join(path, EVENTS);
    this.#record = record;
    this.#options = options;
    this.#files = options.files ?? nodeFiles;
    this.#checkpoints = new Checkpoints(this.#files, join(path, CHECKPOINTS));
    this.#log = new EventLog(new ChainedFile(this.#files, this.#eventsPath), options);
    this.#digests = new ChainedFile(this.#files, join(path, DIGESTS));
  }

  get record(): RunRecord {
    return this.#record;
  }

  get name(): string {
    return basename(this.path);
  }

  /**
   * Creates the directory of a new run. Only this process may write it until it is closed.
   * @throws RunError if the directory cannot be written, exists and is not empty, or another process is creating it.
   *   Nothing is overwritten
   */
  static async create(path: string, record: RunRecord, options: RunDirectoryOptions = {}): Promise<RunDirectory> {
    const files = options.files ?? nodeFiles;
    return writing(path, async () => {
      await requireFree(files, path);
      await files.makeDirectory(path);
      const lock = await lockRun(files, path);
      try {
        await requireFree(files, path); // another process may have been faster
        await removeTemporary(files, path);
        await files.makeDirectory(join(path, EPISODES));
        await files.makeDirectory(join(path, CHECKPOINTS));
        await files.replace(join(path, RECIPE), formatRecord(record));
        const run = new RunDirectory(path, record, options);
        run.#lock = lock;
        return run;
      } catch (error) {
        await lock.release();
        throw error;
      }
    });
  }

  /** Opens an existing run for reading. @throws RunError if there is none, or if it has a link out of it */
  static async open(path: string, options: RunDirectoryOptions = {}): Promise<RunDirectory> {
    const files = options.files ?? nodeFiles;
    requireOwnFiles(path, [RECIPE]);
    const text = await files.readText(join(path, RECIPE)).catch(async (error: unknown) => {
      if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES'].includes(codeOf(error) ?? '')) throw await notARun(files, path);
      throw new RunError(`${path} is not a run: ${messageOf(error)}`);
    });
    requireOwnFiles(path);
    return new RunDirectory(path, parseRecord(text, join(path, RECIPE)), options);
  }

  /**
   * @returns Undefined if the lock works. On a system without locks, a message for the user
   * @throws RunError with the process that writes the run
   */
  async lock(): Promise<string | undefined> {
    this.#lock ??= await lockRun(this.#files, this.path);
    return this.#lock.unguarded;
  }

  /** Ends the writing: writes the digest of all events, and unlocks the run. */
  async close(): Promise<void> {
    if (this.#lock === undefined) return;
    const { cursor } = this.#log;
    try {
      await this.#flushed();
      if (this.begun && cursor.bytes > 0) await this.#digests.end(JSON.stringify({ file: EVENTS, ...cursor }));
    } catch {
      // If the disk is full, the events after the last checkpoint have no digest.
    }
    await this.#lock.release();
    this.#lock = undefined;
  }

  async #flushed(): Promise<void> {
    await Promise.all([this.#log.flushed(), this.#digests.flushed()]);
  }

  emit(event: EventBody): RunEvent {
    return this.#log.emit(event);
  }

  /** Writes an event that already has its stamp, such as an event of a cached warm start. */
  write(event: RunEvent): void {
    this.#log.write(event);
  }

  /**
   * Reads the events of the log. There are none before the first event, and after `rewind` none of those it leaves out.
   */
  async events(): Promise<RunEvent[]> {
    const written = (await this.#files.exists(this.#eventsPath)) ? await readEvents(this.#files, this.#eventsPath) : [];
    return this.begun ? written : [...written.slice(0, this.#log.cursor.lines), ...this.#log.held];
  }

  /**
   * Writes `episodes/step-000012.jsonl`.
   * @param advantages `advantages[e]` has one entry for each turn of episode e
   * @param tokens The effect of the update on the tokens of its turns
   */
  async writeStepEpisodes(
    step: number,
    episodes: readonly Episode[],
    advantages?: readonly EpisodeAdvantages[],
    tokens?: ReadonlyMap<Turn, UpdatedTokens>,
  ): Promise<void> {
    const stored = episodes.map((episode, index) => storedEpisode(episode, advantages?.[index], tokens));
    await this.#writeDigested(this.stepEpisodesPath(step), stored);
  }

  /** Writes `episodes/evaluation-000060.jsonl`. */
  async writeEvaluationEpisodes(step: number, episodes: readonly Episode[]): Promise<void> {
    await this.#writeDigested(
      this.evaluationEpisodesPath(step),
      episodes.map((episode) => storedEpisode(episode)),
    );
  }

  /**
   * Writes the episodes of an evaluation that `drmas evaluate` started to a new file, such as
   * `episodes/evaluate-20260131-094501.jsonl`. It does not disturb a process that writes the run at the same time.
   * @returns The path
   */
  async writeOtherEpisodes(episodes: readonly Episode[], now: Date): Promise<string> {
    requireOwnFiles(this.path);
    return writeNewEpisodes(this.#files, join(this.path, EPISODES), episodes, now);
  }

  async #writeDigested(path: string, episodes: readonly StoredEpisode[]): Promise<void> {
    await this.begin();
    const digest = await writeEpisodes(this.#files, path, episodes);
    this.#digests.append(JSON.stringify({ file: `${EPISODES}/${basename(path)}`, ...digest }));
  }

  stepEpisodesPath(step: number): string {
    return join(this.path, EPISODES, `${stepName(step)}.jsonl`);
  }

  evaluationEpisodesPath(step: number): string {
    return join(this.path, EPISODES, `${stepName(step).replace('step', 'evaluation')}.jsonl`);
  }

  checkpoints(): Promise<Checkpoint[]> {
    return this.#checkpoints.list();
  }

  latestCheckpoint(): Promise<Checkpoint | undefined> {
    return this.#checkpoints.latest();
  }

  /**
   * Compares the files of a checkpoint with their digests.
   * @param wanted Selects the files to compare, by their paths in the checkpoint. Default: all
   * @returns A message for the user if a version without digests wrote the checkpoint, so that nothing was compared
   * @throws CheckpointError if a file has changed or is missing, the file of the digests too
   */
  async requireWhole(checkpoint: Checkpoint, wanted?: (file: string) => boolean): Promise<string | undefined> {
    await this.#checkpoints.cursor(checkpoint); // knows whether there must be digests
    const { directory } = checkpoint;
    if ((await requireWhole(this.#files, directory, wanted)) === 'whole') return undefined;
    return `${directory} was written by a version without digests: its files are not checked`;
  }

  /**
   * Keeps a checkpoint while somebody reads it, if the run removes older ones.
   * @returns Releases it
   */
  async hold(checkpoint: Checkpoint): Promise<() => Promise<void>> {
    const { training } = this.#record.resolved;
    if (!isObject(training) || training.keepCheckpoints === undefined) return async () => {};
    return this.#checkpoints.hold(checkpoint);
  }

  /**
   * Whether a version without digests may have begun the run: recipe.json has no digest, or was written again after an
   * accepted change.
   */
  async mayLackDigests(): Promise<boolean> {
    if (this.#record.acceptedChanges.length > 0) return true;
    return isAsWritten(await this.#files.readText(join(this.path, RECIPE))) === undefined;
  }

  /**
   * Writes `checkpoints/step-000050` atomically from the files that `fill` writes into its directory, then the event.
   * @param options.keep The number of checkpoints to keep, the latest ones. Default: all
   * @param options.pinned The steps whose checkpoints stay in addition
   */
  async writeCheckpoint(
    step: number,
    fill: (directory: string) => Promise<void>,
    options: {
      readonly interrupted?: boolean;
      readonly keep?: number | undefined;
      readonly pinned?: readonly number[];
    } = {},
  ): Promise<void> {
    const { interrupted = false, keep = Number.POSITIVE_INFINITY, pinned = [] } = options;
    await this.begin();
    const cursor = { events: this.#log.cursor, episodes: this.#digests.cursor, interrupted };
    await this.#flushed(); // no checkpoint needs more of the files than is on disk
    const written = await this.#checkpoints.write(step, cursor, fill);
    await this.#options.onCheckpoint?.();
    if (written !== undefined) this.#announce(written);
    const latest = (await this.#checkpoints.list()).slice(-keep).map((checkpoint) => checkpoint.step);
    const kept = new Set([...latest, ...pinned]);
    await this.#checkpoints.prune((checkpoint) => !kept.has(checkpoint.step));
  }

  /**
   * Prepares the return of log, episodes and checkpoints to their state when the checkpoint was written. `begin`
   * changes the files, once the run goes on from there; until then new events wait in memory. Without a checkpoint the
   * run starts from the beginning.
   * @returns Messages for the user: files of an older version that cannot be checked, episodes that were changed
   * @throws CheckpointError if a file of the checkpoint has changed; RunError if the log has
   */
  async rewind(checkpoint: Checkpoint | undefined): Promise<readonly string[]> {
    const cursor = checkpoint === undefined ? undefined : await this.#checkpoints.cursor(checkpoint);
    const unchecked = checkpoint && (await this.requireWhole(checkpoint));
    const notices = unchecked === undefined ? [] : [unchecked];
    const events = await ChainedFile.at(this.#files, this.#eventsPath, cursor?.events);
    const digests = await ChainedFile.at(this.#files, join(this.path, DIGESTS), cursor?.episodes);
    if (cursor?.episodes !== undefined)
      for (const { file, why } of await damagedEpisodes(this.#files, this.path, cursor.episodes.lines))
        notices.push(`${join(this.path, file)} ${why}; the run continues, because no later step uses the file`);
    this.#log = new EventLog(events, { ...this.#options, hold: true });
    this.#digests = digests;
    this.#rewinding = async () => {
      for (const place of [this.path, this.#checkpoints.root, join(this.path, REFERENCES)])
        await removeTemporary(this.#files, place);
      // The checkpoints go first: if the process is killed here, no checkpoint needs more of the log than there is.
      await this.#checkpoints.remove(({ step }) => step > (checkpoint?.step ?? -1));
      await events.cut();
      await digests.cut();
      await removeEpisodesAfter(this.#files, join(this.path, EPISODES), checkpoint?.step ?? -1);
      this.#log.release();
    };
    if (checkpoint && cursor?.interrupted === false) this.#announce(checkpoint);
    return notices;
  }

  /** False from `rewind` to `begin`: the earlier attempt wrote the files. */
  get begun(): boolean {
    return this.#rewinding === undefined;
  }

  /** Does work when `begin` is called, before its changes; at once if no change of a `rewind` is left to make. */
  async beforeBegin(work: () => Promise<void>): Promise<void> {
    const rewinding = this.#rewinding;
    if (rewinding === undefined) await work();
    else this.#rewinding = () => work().then(rewinding);
  }

  /** Makes the changes of the last `rewind`, and writes the events since then. */
  async begin(): Promise<void> {
    await this.#rewinding?.();
    this.#rewinding = undefined;
  }

  #announce({ step, directory }: Checkpoint): void {
    this.emit({ type: 'checkpoint', step, path: `checkpoints/${basename(directory)}` });
  }

  /**
   * Records in recipe.json the code that the run continues with, and the recipe and agents of that code. After `rewind`
   * the file changes when the run begins.
   */
  async recordRecipe(
    code: Omit<RunRecord['recipe'], 'overrides'>,
    now: Pick<RunRecord, 'resolved' | 'agents'>,
    acceptedAt: number | undefined,
  ): Promise<void> {
    const time = (this.#options.clock ?? systemClock).now().toISOString();
    const changed = changedRecord(
      { ...this.record, ...now },
      code,
      acceptedAt === undefined ? [] : [{ time, step: acceptedAt }],
    );
    this.#record = changed;
    const rewinding = this.#rewinding;
    const write = () => this.#files.replace(join(this.path, RECIPE), formatRecord(changed));
    if (rewinding === undefined) await write();
    else this.#rewinding = () => rewinding().then(write);
  }
}
