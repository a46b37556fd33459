import { join } from 'node:path';
import { CheckpointError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { TEMPORARY, writeDirectory } from './atomic.js';
import type { LogCursor } from './event-log.js';

export interface Checkpoint {
  readonly step: number;
  /** Absolute or relative as the run's path is. */
  readonly directory: string;
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

  /** Writes a checkpoint: `fill` puts the state into the directory it is given, the log's position is added. */
  async write(step: number, events: LogCursor, fill: (directory: string) => Promise<void>): Promise<Checkpoint> {
    await this.#files.makeDirectory(this.root);
    const directory = await writeDirectory(this.#files, this.root, stepName(step), async (temporary) => {
      await fill(temporary);
      await this.#files.write(join(temporary, CURSOR_FILE), JSON.stringify({ step, events }));
    });
    return { step, directory };
  }

  /** Where the event log stood when the checkpoint was written. @throws CheckpointError */
  async cursor({ directory }: Checkpoint): Promise<LogCursor> {
    const path = join(directory, CURSOR_FILE);
    try {
      const { events } = JSON.parse(await this.#files.readText(path)) as { events: LogCursor };
      if (Number.isSafeInteger(events.bytes) && Number.isSafeInteger(events.lines)) return events;
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
