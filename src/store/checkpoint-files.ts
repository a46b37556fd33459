import { join } from 'node:path';
import { CheckpointError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import type { LogCursor } from './event-log.js';
import { writeDirectory } from './write-directory.js';

export interface Checkpoint {
  readonly step: number;
  /** The checkpoint's path, absolute or relative like that of the run. */
  readonly directory: string;
}

/** A checkpoint's place in the run. */
export interface CheckpointCursor {
  readonly events: LogCursor;
  /** True when an interruption caused the checkpoint; a run that was never interrupted does not have it. */
  readonly interrupted: boolean;
}

const CURSOR_FILE = 'cursor.json';

/** The name `step-000050`, which sorts like the number. */
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

  /** Lists all checkpoints, oldest first. */
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
   * Writes a checkpoint: `fill` writes the state into the directory that it receives, and the log's position is added.
   * An existing checkpoint of the same step is kept, since equal steps of one run have equal states; only a checkpoint
   * that an interruption wrote in the middle of a step's work is replaced. Returns undefined when an existing one is
   * kept.
   */
  async write(
    step: number,
    cursor: CheckpointCursor,
    fill: (directory: string) => Promise<void>,
  ): Promise<Checkpoint | undefined> {
    await this.#files.makeDirectory(this.root);
    const checkpoint = { step, directory: join(this.root, stepName(step)) };
    if (await this.#files.exists(checkpoint.directory)) {
      if (!(await this.cursor(checkpoint)).interrupted || cursor.interrupted) return undefined;
      await this.#files.remove(checkpoint.directory);
    }
    await writeDirectory(this.#files, this.root, stepName(step), async (temporary) => {
      await fill(temporary);
      await this.#files.write(join(temporary, CURSOR_FILE), JSON.stringify({ step, ...cursor }));
    });
    return checkpoint;
  }

  /** Reads the position of the event log at the time of the checkpoint. @throws CheckpointError when it is malformed */
  async cursor({ directory }: Checkpoint): Promise<CheckpointCursor> {
    const path = join(directory, CURSOR_FILE);
    try {
      const { events, interrupted } = JSON.parse(await this.#files.readText(path)) as CheckpointCursor;
      if (Number.isSafeInteger(events.bytes) && Number.isSafeInteger(events.lines))
        return { events, interrupted: interrupted === true };
    } catch {
      // reported below, together with cursors that lack the numbers
    }
    throw new CheckpointError(`${path}: expected { "events": { "bytes", "lines" } }`);
  }
}
