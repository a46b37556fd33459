/**
 * Copies of runs in an object store: `runs/<name>/<writer>/` is a run's directory as it was at its last whole
 * checkpoint, or at its end. Whoever goes on with a run takes the newest copy and writes one of its own, so that a
 * process which is taken for dead and is not can damage nothing. Checkpoints in other copies go once a later one is
 * whole in one's own.
 */
import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { StoreError } from '../../core/errors.js';
import { nodeFiles, TEMPORARY } from '../../platform/node-files.js';
import { filesBelow, SEAL, sealState } from '../files/digests.js';
import { writeDirectory } from '../files/write-directory.js';
import { CHECKPOINTS, EVENTS } from '../run-files.js';
import { LOCK } from '../run-lock.js';
import { requireFree } from '../run-path.js';
import type { ObjectStore } from './object-store.js';
import { fetchFiles, sendFiles, writerName } from './sealed-copies.js';

/** The seal of a checkpoint, and with it the checkpoint's folder and step. */
const CHECKPOINT_SEAL = new RegExp(`^(${CHECKPOINTS}/step-(\\d+)/)${SEAL.replace('.', '\\.')}$`);
const IN_CHECKPOINT = new RegExp(`^${CHECKPOINTS}/step-(\\d+)/`);
/** How often a copy is looked for whose files are removed while they are fetched. */
const LOOKS = 5;

/** Where the copies of a run lie; its name is that of its directory. */
const placeOf = (run: string) => `runs/${basename(resolve(run))}/`;

interface Copy {
  readonly prefix: string;
  /** Their names in it. */
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

/** The copy of a run that has come furthest, of those with a whole checkpoint. */
async function newestCopy(objects: ObjectStore, run: string): Promise<Copy | undefined> {
  return (await copiesOf(objects, run))
    .map((copy) => ({ ...copy, step: newestSealed(copy.files) }))
    .filter(({ step }) => Number.isFinite(step))
    .sort((a, b) => a.step - b.step || (a.prefix < b.prefix ? -1 : 1))
    .at(-1);
}

/** Whether there is a copy, with a whole checkpoint, of a run with the name of a directory. */
export async function hasCopy(objects: ObjectStore, run: string): Promise<boolean> {
  return (await newestCopy(objects, run)) !== undefined;
}

/**
 * Makes a run's directory from the newest of its copies, whole or not at all. Its log may go further than its last
 * checkpoint, as that of a run which was killed.
 * @returns Whether there was a copy with a whole checkpoint
 * @throws StoreError when it cannot be read; RunError when something else lies at `run`
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
      // A writer that still lives removes what a later checkpoint replaces.
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
  // One that was sealed while another writer took it for a rest lacks files; a later one is then whole.
  for (const folder of [...sealed].sort().slice(0, -1))
    if ((await sealState(nodeFiles, join(directory, folder))).type === 'damaged')
      await nodeFiles.remove(join(directory, folder));
}

/** The step of the last sealed checkpoint among files; negative infinity where there is none. */
const newestSealed = (files: Iterable<string>): number =>
  Math.max(...Array.from(files, (file) => Number(CHECKPOINT_SEAL.exec(file)?.[2] ?? Number.NEGATIVE_INFINITY)));

const isSeal = (name: string) => CHECKPOINT_SEAL.test(name);
const sealsFirst = (names: readonly string[]) => [...names.filter(isSeal), ...names.filter((name) => !isSeal(name))];

/** The copy that this process writes of a run which it trains. */
export class RunCopy {
  readonly #objects: ObjectStore;
  readonly #run: string;
  readonly #prefix: string;
  /** What was sent, and as what: a file that has not changed is not sent again. */
  readonly #sent = new Map<string, string>();
  /** Other copies have no checkpoints before this step. */
  #removedBefore = Number.NEGATIVE_INFINITY;

  constructor(objects: ObjectStore, run: string) {
    this.#objects = objects;
    this.#run = run;
    this.#prefix = `${placeOf(run)}${writerName()}/`;
  }

  /**
   * Makes the copy what the run's directory is. A checkpoint that appears is sealed last, when the log and the episodes
   * before it are there too; one that disappears loses its seal first. Called while nothing writes to the run.
   * @throws StoreError; the copy is then what it was before, or that and files of which nobody takes notice
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
   * Removes the checkpoints of other writers' copies before the last one that is whole in this. Their logs stay: a
   * writer that still lives would not send them again. What is sealed loses its seal first.
   * @throws StoreError; what is left goes the next time
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
