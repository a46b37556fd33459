import { join } from 'node:path';
import { CheckpointError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import type { LogCursor } from './event-log.js';
import { TEMPORARY, writeDirectory } from './write-directory.js';

export interface Checkpoint {
  readonly step: number;
  /** Absolute or relative as the run's path is. */
  readonly directory: string;
}

/** A checkpoint's place in the run. */
export interface CheckpointCursor {
  readonly events: LogCursor;
  /** Written because the run was interrupted, not because it was due: a run that was never interrupted does not have it. */
  readonly interrupted: boolean;
}

const CURSOR_FILE = 'cursor.json';

/** `step-000050`: sorts like the number. */
export function stepName(step: number): string {
  return `step-${String(step).padStart(6, '0')}`;
}

/** The checkpoints below a run's `checkpoints/`, each complete or not there. */
export class Checkpoints {
  readonly root: string;
  readonly #files: Files;

  constructor(files: Files, root: string) {
    this.#files = files;
    this.root = root;
  }

  /** All of them, oldest first. */
  async list(): Promise<Checkpoint[]> {
    const names = (await this.#files.list(this.root)).filter((name) => /^step-\d{6,}$/.test(name));
    return names
      .map((name) => ({ step: Number(name.slice('step-'.length)), directory: join(this.root, name) }))
      .sort((a, b) => a.step - b.step);
  }

  async latest(): Promise<Checkpoint | undefined> {
    return (await this.list()).at(-1);
  }

  /**
   * Writes a checkpoint: `fill` puts the state into the directory it is given, the log's position is added. One of the same
   * step that is already there is kept, for equal steps of one run have equal states; only one that an interruption left in
   * the middle of a step's work is replaced. Returns undefined where nothing was written.
   */
  async write(
    step: number,
    cursor: CheckpointCursor,
    fill: (directory: string) => Promise<void>,
  ): Promise<Checkpoint | undefined> {
    await this.#files.makeDirectory(this.root);
    const known = { step, directory: join(this.root, stepName(step)) };
    if (await this.#files.exists(known.directory)) {
      if (!(await this.cursor(known)).interrupted || cursor.interrupted) return undefined;
      await this.#files.remove(known.directory);
    }
    await writeDirectory(this.#files, this.root, stepName(step), async (temporary) => {
      await fill(temporary);
      await this.#files.write(join(temporary, CURSOR_FILE), JSON.stringify({ step, ...cursor }));
    });
    return known;
  }

  /** Where the event log stood when the checkpoint was written. @throws CheckpointError */
  async cursor({ directory }: Checkpoint): Promise<CheckpointCursor> {
    const path = join(directory, CURSOR_FILE);
    try {
      const { events, interrupted } = JSON.parse(await this.#files.readText(path)) as CheckpointCursor;
      if (Number.isSafeInteger(events.bytes) && Number.isSafeInteger(events.lines))
        return { events, interrupted: interrupted === true };
    } catch {
      // reported below, with the cursors that have no numbers
    }
    throw new CheckpointError(`${path}: expected { "events": { "bytes", "lines" } }`);
  }

  /** Removes what a run that was killed in mid-write left behind. */
  async removeTemporary(): Promise<void> {
    for (const name of await this.#files.list(this.root)) {
      if (name.startsWith(TEMPORARY)) await this.#files.remove(join(this.root, name));
    }
  }
}
