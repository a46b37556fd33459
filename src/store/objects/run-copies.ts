/**
 * Copies of runs in an object store: `runs/<name>/<writer>/` is a run's directory as it was at its last whole
 * checkpoint, or at its end. Whoever goes on with a run takes the newest copy and writes one of its own, so that a
 * process which is taken for dead and is not can damage nothing.
 */
import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { nodeFiles, TEMPORARY } from '../../platform/node-files.js';
import { filesBelow, SEAL } from '../files/digests.js';
import { writeDirectory } from '../files/write-directory.js';
import { CHECKPOINTS, EVENTS } from '../run-files.js';
import { LOCK } from '../run-lock.js';
import { requireFree } from '../run-path.js';
import type { ObjectStore } from './object-store.js';
import { fetchFiles, sendFiles, writerName } from './sealed-copies.js';

/** The seal of a checkpoint, and with it the checkpoint's folder and step. */
const CHECKPOINT_SEAL = new RegExp(`^(${CHECKPOINTS}/step-(\\d+)/)${SEAL.replace('.', '\\.')}$`);
const IN_CHECKPOINT = new RegExp(`^${CHECKPOINTS}/[^/]+/`);

/** Where the copies of a run lie; its name is that of its directory. */
const placeOf = (run: string) => `runs/${basename(resolve(run))}/`;

/** The copy of a run that has come furthest, of those with a whole checkpoint. */
async function newestCopy(objects: ObjectStore, run: string): Promise<{ prefix: string; files: string[] } | undefined> {
  const place = placeOf(run);
  const copies = new Map<string, string[]>();
  for (const name of await objects.list(place)) {
    const [writer = '', ...rest] = name.slice(place.length).split('/');
    const files = copies.get(writer) ?? [];
    files.push(rest.join('/'));
    copies.set(writer, files);
  }
  return [...copies]
    .map(([writer, files]) => ({ prefix: `${place}${writer}/`, files, step: Math.max(...sealedSteps(files)) }))
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
  const newest = await newestCopy(objects, run);
  if (newest === undefined) return false;
  const sealed = new Set(newest.files.flatMap((file) => CHECKPOINT_SEAL.exec(file)?.[1] ?? []));
  const wanted = newest.files.filter((file) => {
    const folder = IN_CHECKPOINT.exec(file)?.[0];
    return folder === undefined || sealed.has(folder);
  });
  await requireFree(nodeFiles, run);
  await nodeFiles.remove(run); // empty
  await nodeFiles.makeDirectory(dirname(resolve(run)));
  await writeDirectory(nodeFiles, dirname(resolve(run)), basename(resolve(run)), (directory) =>
    fetchFiles(objects, newest.prefix, wanted, directory),
  );
  return true;
}

const sealedSteps = (files: readonly string[]) =>
  files.flatMap((file) => {
    const step = CHECKPOINT_SEAL.exec(file)?.[2];
    return step === undefined ? [] : [Number(step)];
  });

/** The copy that this process writes of a run which it trains. */
export class RunCopy {
  readonly #objects: ObjectStore;
  readonly #run: string;
  readonly #prefix: string;
  /** What was sent, and as what: a file that has not changed is not sent again. */
  readonly #sent = new Map<string, string>();

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
    const isSeal = (name: string) => CHECKPOINT_SEAL.test(name);
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
    for (const name of [...gone.filter(isSeal), ...gone.filter((name) => !isSeal(name))]) {
      await this.#objects.remove(this.#prefix + name);
      this.#sent.delete(name);
    }
  }

  async #send(names: readonly string[], states: ReadonlyMap<string, string>): Promise<void> {
    await sendFiles(this.#objects, this.#prefix, this.#run, names);
    for (const name of names) this.#sent.set(name, states.get(name) ?? '');
  }
}
