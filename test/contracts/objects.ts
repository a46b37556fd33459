/** The contract of object stores and of the copies of runs in them. The writer may die at any call. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSealedDirectory } from '@drmas/engine/disk';
import { StoreError } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import { nodeFiles } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it, type TestOptions } from 'vitest';
import { checkObjects, type ObjectStore } from '../../src/cluster/objects/object-store.js';
import { hasCopy, RunCopy, takeCopy } from '../../src/cluster/objects/run-copies.js';
import { SealedCopies } from '../../src/cluster/objects/sealed-copies.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { bytesOf } from '../support/time-and-chance.js';

/**
 * @param open returns an empty store at each call
 * @param crashes the options of the test that stops a writer after each of its calls
 * @param lives the options of the test that stops one writer of three after each of its calls
 */
export function objectStoreContract(
  name: string,
  open: () => Promise<ObjectStore>,
  crashes: TestOptions = {},
  lives: TestOptions = {},
): void {
  const timeout = 120_000;
  describe(`${name} as an object store`, () => {
    let root: string;
    beforeAll(async () => {
      root = await mkdtemp(join(tmpdir(), 'drmas-objects-'));
    });
    afterAll(() => rm(root, { recursive: true }));

    const put = async (objects: ObjectStore, name: string, content: string | Uint8Array) => {
      await writeFile(join(root, 'sent'), content);
      await objects.put(name, join(root, 'sent'));
    };
    const get = async (objects: ObjectStore, name: string) => {
      await objects.get(name, join(root, 'got'));
      return readFile(join(root, 'got'));
    };

    it('gives back stored files of any size and name', async () => {
      const objects = await open();
      const large = Buffer.alloc(5_500_001, bytesOf('large', 251)); // more than a part of S3
      const files = { 'a/empty': '', 'a/b c+d&e=ü%.json': 'text', 'a/large': large };
      for (const [name, content] of Object.entries(files)) await put(objects, name, content);
      for (const [name, content] of Object.entries(files))
        expect(Buffer.compare(await get(objects, name), Buffer.from(content))).toBe(0);
      expect(await objects.list('a/')).toEqual(Object.keys(files).sort());
      await put(objects, 'a/empty', 'no more');
      expect((await get(objects, 'a/empty')).toString()).toBe('no more');
    });

    it('lists names below a prefix, however many there are, and none that only begin alike', async () => {
      const objects = await open();
      const names = Array.from({ length: 23 }, (_, i) => `run/${i % 3}/file-${i}`).sort();
      for (const name of [...names, 'runs/other']) await put(objects, name, name);
      expect(await objects.list('run/')).toEqual(names);
      expect(await objects.list('run/1/')).toEqual(names.filter((name) => name.startsWith('run/1/')));
      expect(await objects.list('nothing/')).toEqual([]);
    });

    it('removes files, also missing ones, and names a missing file', async () => {
      const objects = await open();
      await put(objects, 'a', 'one');
      await objects.remove('a');
      await objects.remove('a');
      const missing = await get(objects, 'a').catch((error: unknown) => error);
      expect(missing).toBeInstanceOf(StoreError);
      expect(missing).toMatchObject({ reason: 'missing', message: expect.stringContaining(objects.place) });
    });

    it('leaves nothing behind when it is looked at', async () => {
      const objects = await open();
      await checkObjects(objects);
      expect(await objects.list('probe/')).toEqual([]);
    });

    it('shows a sealed directory when it is whole, and not before', async () => {
      const objects = await open();
      const directory = await writeSealedDirectory(nodeFiles, root, 'made', async (temporary) => {
        await mkdir(join(temporary, 'inner'));
        await writeFile(join(temporary, 'inner', 'weights'), 'bytes');
      });
      const into = join(root, 'fetched');
      const dying = mortal(objects, 1);
      await expect(new SealedCopies(dying).publish('warm/h', directory)).rejects.toThrow(DEATH);
      expect(await objects.list('warm/h/')).toHaveLength(1);
      expect(await new SealedCopies(objects).fetch('warm/h', into)).toBe(false);
      await new SealedCopies(objects).publish('warm/h', directory);
      expect(await new SealedCopies(objects).fetch('warm/h', into)).toBe(true);
      expect(await readFile(join(into, 'inner', 'weights'), 'utf8')).toBe('bytes');
    });

    it('has the last whole checkpoint of a run, whenever its writer dies, and never loses one', {
      timeout,
      ...crashes,
    }, async () => {
      const objects = await open();
      let died = true;
      for (let after = 0; died; after++) {
        const dying = mortal(objects, after);
        const run = join(root, 'here', `mine-${after}`);
        const name = join(root, 'there', `mine-${after}`);
        died = await trainUntilDeath(run, dying);
        const sealed = Math.max(0, ...dying.seals);
        expect(await hasCopy(objects, name)).toBe(sealed > 0);
        expect(await takeCopy(objects, name)).toBe(sealed > 0);
        if (sealed === 0) continue;
        const taken = await RunDirectory.open(name);
        const checkpoint = await taken.latestCheckpoint();
        expect(checkpoint?.step).toBe(sealed);
        expect(await readFile(join(checkpoint?.directory ?? '', 'state'), 'utf8')).toBe(`state ${sealed}`);
        await taken.lock();
        expect(await taken.rewind(checkpoint)).toEqual([]); // compares log, episodes and weights with their digests
        await taken.close();
      }
    });

    it('takes the copy that has come furthest, and lets each writer write its own', async () => {
      const objects = await open();
      const [first, second] = [join(root, 'first', 'twice'), join(root, 'second', 'twice')];
      await trainUntilDeath(first, mortal(objects, 12));
      const before = await contents(objects, root);
      expect(await takeCopy(objects, second)).toBe(true);
      const run = await RunDirectory.open(second, { onCheckpoint: () => copy.update() });
      const copy = new RunCopy(objects, second);
      await run.lock();
      const checkpoint = await run.latestCheckpoint();
      await run.rewind(checkpoint);
      await writeCheckpoint(run, 9);
      await run.close();
      await copy.update();
      const after = await contents(objects, root);
      for (const [name, content] of before) expect([name, after.get(name)]).toEqual([name, content]);
      const third = join(root, 'third', 'twice');
      expect(await takeCopy(objects, third)).toBe(true);
      const taken = await RunDirectory.open(third);
      expect((await taken.checkpoints()).map(({ step }) => step)).toEqual([checkpoint?.step, 9]);
      await taken.lock();
      expect(await taken.rewind(await taken.latestCheckpoint())).toEqual([]);
      await taken.close();
    });
    it('has the checkpoints that the run has and no older ones, whenever a writer dies, and never loses one', {
      timeout,
      ...lives,
    }, async () => {
      const objects = await open();
      const random = new RandomStream('lives');
      let died = true;
      for (let after = 0; died; after += random.integer(1, 6)) {
        const name = `lives-${after}`;
        const life = async (directory: string, store: ObjectStore, steps: readonly number[]) => {
          const path = join(root, directory, name);
          expect(await takeCopy(objects, path)).toBe(true);
          return { path, died: await goOnUntilDeath(path, store, steps) };
        };
        await trainUntilDeath(join(root, 'life-1', name), objects);
        const dying = mortal(objects, after);
        ({ died } = await life('life-2', dying, [4]));
        const newest = Math.max(3, ...dying.seals);
        const { path } = await life('life-3', objects, [newest + 1, newest + 2]);
        const run = await RunDirectory.open(path);
        const steps = (await run.checkpoints()).map(({ step }) => step);
        expect(await storedSteps(objects, name)).toEqual(steps);
      }
    });

    it('leaves a writer that was taken for dead all that it needs to come furthest', async () => {
      const objects = await open();
      const [slow, quick] = [join(root, 'slow', 'both'), join(root, 'quick', 'both')];
      const record = { version: 1, recipe: { source: 'mine', overrides: [], codeHash: '' }, resolved: {} } as const;
      const copy = new RunCopy(objects, slow);
      const onCheckpoint = async () => {
        await copy.update();
        await copy.removeOlder();
      };
      const run = await RunDirectory.create(slow, { ...record, acceptedChanges: [] }, { onCheckpoint });
      await writeCheckpoint(run, 1);
      expect(await takeCopy(objects, quick)).toBe(true);
      await goOnUntilDeath(quick, objects, [2, 3]);
      expect(await storedSteps(objects, 'both')).toEqual([2, 3]);
      for (const step of [2, 3, 4]) await writeCheckpoint(run, step);
      await onCheckpoint();
      await run.close();
      const taken = join(root, 'taken', 'both');
      expect(await takeCopy(objects, taken)).toBe(true);
      const after = await RunDirectory.open(taken);
      expect((await after.checkpoints()).map(({ step }) => step)).toEqual([3, 4]);
      await after.lock();
      expect(await after.rewind(await after.latestCheckpoint())).toEqual([]);
      await after.close();
    });
  });
}

const DEATH = 'the writer is dead';

/** A store of a process that dies after so many writes; it remembers the steps that it has sealed. */
function mortal(objects: ObjectStore, writes: number): ObjectStore & { readonly seals: number[] } {
  let left = writes;
  const seals: number[] = [];
  const living = () => {
    if (left-- <= 0) throw new Error(DEATH);
  };
  return {
    place: objects.place,
    isFolder: objects.isFolder,
    seals,
    async put(name, path) {
      living();
      await objects.put(name, path);
      const step = /step-(\d+)\/digests\.json$/.exec(name)?.[1];
      if (step !== undefined) seals.push(Number(step));
    },
    get: (name, path) => objects.get(name, path),
    list: (prefix) => objects.list(prefix),
    async remove(name) {
      living();
      await objects.remove(name);
    },
  };
}

/**
 * Writes a run of three steps with a checkpoint each; the last two checkpoints stay. Returns whether the store ended
 * the run.
 */
async function trainUntilDeath(path: string, objects: ObjectStore): Promise<boolean> {
  const copy = new RunCopy(objects, path);
  const record = { version: 1, recipe: { source: 'mine', overrides: [], codeHash: '' }, resolved: {} } as const;
  const run = await RunDirectory.create(
    path,
    { ...record, acceptedChanges: [] },
    { onCheckpoint: () => copy.update() },
  );
  return untilDeath(run, async () => {
    for (const step of [1, 2, 3]) await writeCheckpoint(run, step);
  });
}

/** Goes on from the last checkpoint of a run that was taken. Says whether the store ended it. */
async function goOnUntilDeath(path: string, objects: ObjectStore, steps: readonly number[]): Promise<boolean> {
  const copy = new RunCopy(objects, path);
  const onCheckpoint = async () => {
    await copy.update();
    await copy.removeOlder();
  };
  const run = await RunDirectory.open(path, { onCheckpoint });
  return untilDeath(run, async () => {
    await run.lock();
    expect(await run.rewind(await run.latestCheckpoint())).toEqual([]);
    for (const step of steps) await writeCheckpoint(run, step);
    await onCheckpoint(); // as at the run's end
  });
}

/** Works on a run and closes it. Says whether the store ended the work. */
async function untilDeath(run: RunDirectory, work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return false;
  } catch (error) {
    expect(String(error)).toContain(DEATH);
    return true;
  } finally {
    await run.close();
  }
}

async function writeCheckpoint(run: RunDirectory, step: number): Promise<void> {
  run.emit({ type: 'warning', code: 'test', message: `step ${step}` });
  await run.writeStepEpisodes(step, []);
  const fill = (directory: string) => writeFile(join(directory, 'state'), `state ${step}`);
  await run.writeCheckpoint(step, fill, { keep: 2 });
}

/** The steps of all checkpoints with a file in the store, in the copies of all writers. */
export async function storedSteps(objects: ObjectStore, run: string): Promise<number[]> {
  const folders = (await objects.list(`runs/${run}/`)).flatMap((file) => /.*\/checkpoints\/step-\d+/.exec(file) ?? []);
  return Array.from(new Set(folders), (folder) => Number(folder.slice(-6))).sort((a, b) => a - b);
}

async function contents(objects: ObjectStore, root: string): Promise<Map<string, string>> {
  const all = new Map<string, string>();
  for (const name of await objects.list('runs/')) {
    await objects.get(name, join(root, 'content'));
    all.set(name, await readFile(join(root, 'content'), 'utf8'));
  }
  return all;
}
