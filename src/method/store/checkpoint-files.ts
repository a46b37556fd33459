import { join } from 'node:path';
import { type LogCursor, SEAL, writeSealedDirectory } from '@drmas/engine/disk';
import { CheckpointError, isObject, messageOf } from '@drmas/engine/errors';
import { parseStored } from '@drmas/engine/events';
import type { Files } from '@drmas/engine/host';
import { removeStale, TEMPORARY, temporaryName } from '@drmas/engine/platform';
import { z } from 'zod';

export interface Checkpoint {
  readonly step: number;
  /** The checkpoint's path: absolute if the run's path is, else relative. */
  readonly directory: string;
}

export interface CheckpointCursor {
  readonly events: LogCursor;
  /** The number of lines in the list of episode digests. Versions without digests have none. */
  readonly episodes?: LogCursor | undefined;
  /** True if an interruption caused the checkpoint. Absent in a run that was never interrupted. */
  readonly interrupted: boolean;
}

const CURSOR_FILE = 'cursor.json';

/** How a reader's mark on a checkpoint begins. It is a temporary file, so the next process that trains removes it. */
const HELD = 'held-';

const place = z.object({ bytes: z.int().min(0), lines: z.int().min(0), sha256: z.string().optional() });

/** Version 1, which had no digests, did not write its number. */
const cursorSchema = z.object({
  version: z.union([z.literal(1), z.literal(2)]).default(1),
  step: z.int().min(0),
  events: place,
  episodes: place.optional(),
  interrupted: z.boolean().default(false),
});
const VERSION = 2;

/**
 * The directory of an agent's model, relative to a checkpoint: its policy's, or its adapter's if the policy's agents
 * have adapters.
 * @param policies The recorded settings of the run's policies
 */
export function agentModelPath(policies: unknown, policy: string, agent: string): string {
  const settings = isObject(policies) ? policies[policy] : undefined;
  const adapted = isObject(settings) && settings.agentAdapters !== undefined;
  return adapted ? `${policy}/agents/${agent}` : policy;
}

/** The name `step-000050`, which sorts like the number. */
export function stepName(step: number): string {
  return `step-${String(step).padStart(6, '0')}`;
}

/** The checkpoints in a run's `checkpoints/`. Each is complete or absent. */
export class Checkpoints {
  readonly root: string;
  readonly #files: Files;

  constructor(files: Files, root: string) {
    this.#files = files;
    this.root = root;
  }

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
   * Writes a checkpoint: `fill` writes the state into the directory that it receives, and this method adds the log's
   * position. An existing checkpoint of the same step is kept, because equal steps of one run have equal states. The
   * exception is a checkpoint that an interruption wrote in the middle of a step: it is replaced. Returns undefined if
   * it kept an existing checkpoint.
   */
  async write(
    step: number,
    cursor: CheckpointCursor,
    fill: (directory: string) => Promise<void>,
  ): Promise<Checkpoint | undefined> {
    await this.#files.makeDirectory(this.root);
    const checkpoint = { step, directory: join(this.root, stepName(step)) };
    const replaces = await this.#files.exists(checkpoint.directory);
    if (replaces && (!(await this.cursor(checkpoint)).interrupted || cursor.interrupted)) return undefined;
    // The checkpoint that is replaced stays until the new one is complete.
    const name = replaces ? temporaryName(stepName(step)) : stepName(step);
    const written = await writeSealedDirectory(this.#files, this.root, name, async (temporary) => {
      await fill(temporary);
      await this.#files.write(join(temporary, CURSOR_FILE), JSON.stringify({ version: VERSION, step, ...cursor }));
    });
    if (!replaces) return checkpoint;
    const aside = await this.#setAside(checkpoint);
    await this.#files.rename(written, checkpoint.directory);
    await this.#files.remove(aside);
    return checkpoint;
  }

  /**
   * Reads a checkpoint's position in the run. @throws CheckpointError if it is malformed, or belongs to another step
   */
  async cursor({ step, directory }: Checkpoint): Promise<CheckpointCursor> {
    const path = join(directory, CURSOR_FILE);
    const text = await this.#files.readText(path).catch((error: unknown) => {
      throw new CheckpointError(`${path} cannot be read: ${messageOf(error)}`);
    });
    const data = parseStored(cursorSchema, text, {
      path,
      what: 'the place of a checkpoint',
      latest: VERSION,
      fault: (message) => new CheckpointError(message),
    });
    if (data.step !== step) throw new CheckpointError(`${path} is of step ${data.step}, its directory of step ${step}`);
    if (data.version >= 2 && !(await this.#files.exists(join(directory, SEAL))))
      throw new CheckpointError(`${join(directory, SEAL)} is missing`);
    return data;
  }

  /** Removes the checkpoints for which `which` is true. No reader sees a checkpoint with only a part of its files. */
  async remove(which: (checkpoint: Checkpoint) => boolean): Promise<void> {
    for (const checkpoint of (await this.list()).filter(which))
      await this.#files.remove(await this.#setAside(checkpoint));
  }

  /** As `remove`, but leaves the checkpoints that readers hold. A mark that a killed reader left counts for a day. */
  async prune(which: (checkpoint: Checkpoint) => boolean): Promise<void> {
    const marks = (await this.#files.list(this.root)).filter((name) => name.startsWith(TEMPORARY + HELD));
    const isHeld = (step: number) => marks.some((name) => name.startsWith(`${TEMPORARY}${HELD}${stepName(step)}-`));
    await this.remove((checkpoint) => which(checkpoint) && !isHeld(checkpoint.step));
    if (marks.length > 0) await removeStale(this.#files, this.root, TEMPORARY + HELD);
  }

  /**
   * Keeps a checkpoint from `prune`, unless the directory cannot be written.
   * @returns Releases it
   */
  async hold({ step }: Checkpoint): Promise<() => Promise<void>> {
    const mark = join(this.root, temporaryName(HELD + stepName(step)));
    await this.#files.write(mark, '').catch(() => {});
    return () => this.#files.remove(mark).catch(() => {});
  }

  /** Renames a checkpoint whose files will be deleted, because the process may end in between. */
  async #setAside({ step, directory }: Checkpoint): Promise<string> {
    const aside = join(this.root, temporaryName(stepName(step)));
    await this.#files.rename(directory, aside);
    return aside;
  }
}
