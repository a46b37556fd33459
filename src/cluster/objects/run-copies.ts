/**
 * Copies of runs in an object store: `runs/<name>/<writer>/` is a run's directory at its last complete checkpoint, or
 * at its end. A process that resumes a run takes the newest copy and writes a copy of its own, so that a process that
 * seemed dead but is alive can damage nothing. When its own copy has a complete checkpoint, it removes earlier
 * checkpoints from the other copies.
 */
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { filesBelow, SEAL, sealState, writeDirectory } from '@drmas/engine/disk';
import { StoreError } from '@drmas/engine/errors';
import { nodeFiles, TEMPORARY } from '@drmas/engine/platform';
import { CHECKPOINTS, EVENTS, LOCK, requireFree } from '../../method/store.js';
import type { ObjectStore } from './object-store.js';
import { fetchFiles, sendFiles, writerName } from './sealed-copies.js';

/** The file that seals a checkpoint, with the checkpoint's folder and step. */
const CHECKPOINT_SEAL = new RegExp(`^(${CHECKPOINTS}/step-(\\d+)/)${SEAL.replace('.', '\\.')}$`);
const IN_CHECKPOINT = new RegExp(`^${CHECKPOINTS}/step-(\\d+)/`);
/** The most attempts to fetch a copy whose files are removed meanwhile. */
const LOOKS = 5;

/** The folder of a run's copies. It has the name of the run's directory. */
const placeOf = (run: string) => `runs/${basename(resolve(run))}/`;

interface Copy {
  readonly prefix: string;
  readonly files: readonly string[];
}

async function copiesOf(objects: ObjectStore, run: string): Promise<Copy[]> {
  const place = placeOf(run);
  const copies = new Map<string, string[]>();
  for (const name of await objects.list(place)) {
    const [writer = '', ...rest] = name.slice(place.length).split('/');
    const files = copies.get(writer) ?? [];
    files.push(rest.join('/'));
    copies.set(writer, files);
  }
  return Array.from(copies, ([writer, files]) => ({ prefix: `${place}${writer}/`, files }));
}

/** The copy with the latest complete checkpoint. */
async function newestCopy(objects: ObjectStore, run: string): Promise<Copy | undefined> {
  return (await copiesOf(objects, run))
    .map((copy) => ({ ...copy, step: newestSealed(copy.files) }))
    .filter(({ step }) => Number.isFinite(step))
    .sort((a, b) => a.step - b.step || (a.prefix < b.prefix ? -1 : 1))
    .at(-1);
}

/** Whether there is a copy with a complete checkpoint of the run with a directory's name. */
export async function hasCopy(objects: ObjectStore, run: string): Promise<boolean> {
  return (await newestCopy(objects, run)) !== undefined;
}

/**
 * Whether the copies of runs with a directory's name are of the run in it: whether their logs begin with the same
 * event. @throws StoreError when a log cannot be read
 */
export async function copiesAreOf(objects: ObjectStore, run: string): Promise<boolean> {
  const beginning = await firstLine(join(run, EVENTS));
  const directory = await mkdtemp(join(tmpdir(), 'drmas-copy-'));
  try {
    for (const { prefix, files } of await copiesOf(objects, run)) {
      if (!files.includes(EVENTS)) continue;
      await fetchFiles(objects, prefix, [EVENTS], directory);
      if ((await firstLine(join(directory, EVENTS))) !== beginning) return false;
    }
    return true;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function firstLine(path: string): Promise<string | undefined> {
  const file = await open(path);
  try {
    for await (const line of file.readLines()) return line;
    return undefined;
  } finally {
    await file.close();
  }
}

/**
 * Restores a run's directory from its newest copy, completely or not at all. Its log may have events after its last
 * checkpoint, as after a crash.
 * @returns Whether there was a copy with a complete checkpoint
 * @throws StoreError when the copy cannot be read; RunError when `run` holds other files
 */
export async function takeCopy(objects: ObjectStore, run: string): Promise<boolean> {
  for (let looks = 1; ; looks++) {
    const newest = await newestCopy(objects, run);
    if (newest === undefined) return false;
    await requireFree(nodeFiles, run);
    await nodeFiles.remove(run); // empty
    await nodeFiles.makeDirectory(dirname(resolve(run)));
    try {
      await writeDirectory(nodeFiles, dirname(resolve(run)), basename(resolve(run)), (directory) =>
        fetchCopy(objects, newest, directory),
      );
      return true;
    } catch (error) {
      // A writer that is still alive removes checkpoints when a later one replaces them.
      if (!(error instanceof StoreError) || error.reason !== 'missing' || looks === LOOKS) throw error;
    }
  }
}

async function fetchCopy(objects: ObjectStore, { prefix, files }: Copy, directory: string): Promise<void> {
  const sealed = new Set(files.flatMap((file) => CHECKPOINT_SEAL.exec(file)?.[1] ?? []));
  const wanted = files.filter((file) => {
    const folder = IN_CHECKPOINT.exec(file)?.[0];
    return folder === undefined || sealed.has(folder);
  });
  await fetchFiles(objects, prefix, wanted, directory);
  // A copy may be sealed and still lack files that another writer has removed. Then a later copy is complete.
  for (const folder of [...sealed].sort().slice(0, -1))
    if ((await sealState(nodeFiles, join(directory, folder))).type === 'damaged')
      await nodeFiles.remove(join(directory, folder));
}

/** The step of the last sealed checkpoint among files; negative infinity if there is none. */
const newestSealed = (files: Iterable<string>): number =>
  Math.max(...Array.from(files, (file) => Number(CHECKPOINT_SEAL.exec(file)?.[2] ?? Number.NEGATIVE_INFINITY)));

const isSeal = (name: string) => CHECKPOINT_SEAL.test(name);
const sealsFirst = (names: readonly string[]) => [...names.filter(isSeal), ...names.filter((name) => !isSeal(name))];

export class RunCopy {
  readonly #objects: ObjectStore;
  readonly #run: string;
  readonly #prefix: string;
  /** The version of each file that was sent: an unchanged file is not sent again. */
  readonly #sent = new Map<string, string>();
  /** Other copies have no checkpoints before this step. */
  #removedBefore = Number.NEGATIVE_INFINITY;

  constructor(objects: ObjectStore, run: string) {
    this.#objects = objects;
    this.#run = run;
    this.#prefix = `${placeOf(run)}${writerName()}/`;
  }

  /**
   * Updates the copy to the state of the run's directory. A new checkpoint is sealed last, after the log and the
   * episodes before it; a removed checkpoint loses its seal first. Call it only while nothing writes to the run.
   * @throws StoreError; the copy then has its earlier state, possibly with extra files that readers ignore
   */
  async update(): Promise<void> {
    const now = new Map<string, string>();
    for (const name of await filesBelow(nodeFiles, this.#run)) {
      if (name === LOCK || name.split('/').some((word) => word.startsWith(TEMPORARY))) continue;
      const { size, mtimeMs } = await stat(join(this.#run, name));
      now.set(name, `${size} ${mtimeMs}`);
    }
    const changed = [...now].flatMap(([name, state]) => (this.#sent.get(name) === state ? [] : [name]));
    await this.#send(
      changed.filter((name) => !isSeal(name) && name !== EVENTS),
      now,
    );
    await this.#send(
      changed.filter((name) => name === EVENTS),
      now,
    );
    await this.#send(changed.filter(isSeal), now);
    const gone = [...this.#sent.keys()].filter((name) => !now.has(name));
    for (const name of sealsFirst(gone)) {
      await this.#objects.remove(this.#prefix + name);
      this.#sent.delete(name);
    }
  }

  /**
   * Removes the checkpoints of other writers' copies that are older than the last complete one of this copy. Their logs
   * stay, because a writer that is still alive would not send them again. A checkpoint loses its seal first.
   * @throws StoreError; the remaining files are removed the next time
   */
  async removeOlder(): Promise<void> {
    const newest = newestSealed(this.#sent.keys());
    if (newest <= this.#removedBefore) return;
    for (const { prefix, files } of await copiesOf(this.#objects, this.#run)) {
      if (prefix === this.#prefix) continue;
      const older = files.filter((file) => Number(IN_CHECKPOINT.exec(file)?.[1] ?? newest) < newest);
      for (const file of sealsFirst(older)) await this.#objects.remove(prefix + file);
    }
    this.#removedBefore = newest;
  }

  async #send(names: readonly string[], states: ReadonlyMap<string, string>): Promise<void> {
    await sendFiles(this.#objects, this.#prefix, this.#run, names);
    for (const name of names) this.#sent.set(name, states.get(name) ?? '');
  }
}
