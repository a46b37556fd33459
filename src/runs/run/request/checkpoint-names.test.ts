import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import { expect, it } from 'vitest';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { type Checkpoint, RunDirectory } from '../../../method/store.js';
import { whileHeld } from './checkpoint-names.js';

const root = temporaryRoot();
const stateOf = ({ directory }: Checkpoint) => readFile(join(directory, 'state.json'), 'utf8');

/** A run that keeps one checkpoint, and the function that lets it train a step. */
async function training(name: string) {
  const resolved = { training: { keepCheckpoints: 1 } };
  const recipe = { source: 'math', overrides: [], codeHash: 'abc' };
  const record = { version: 1 as const, recipe, resolved, acceptedChanges: [] };
  const run = await RunDirectory.create(join(root, name), record);
  let last = 0;
  const train = async () => {
    last++;
    await run.writeCheckpoint(last, (to) => writeFile(join(to, 'state.json'), String(last)), { keep: 1 });
  };
  await train();
  return { run, train, kept: () => readdir(join(run.path, 'checkpoints')) };
}

it('holds a checkpoint while it is read, though the run keeps one, and releases it', async () => {
  const { run, train, kept } = await training('held');
  const read = await whileHeld(run, undefined, 'test', async (checkpoint) => {
    for (let step = 2; step < 6; step++) await train();
    return stateOf(checkpoint);
  });
  expect(read).toBe('1');
  await train();
  expect(await kept()).toEqual(['step-000006']);
  const failing = whileHeld(run, undefined, 'test', () => Promise.reject(new Error('no memory')));
  await expect(failing).rejects.toThrow('no memory');
  await train();
  expect(await kept()).toEqual(['step-000007']);
});

it('reads the newest one if the run removes what was found, as it cannot be held in a read-only directory', async () => {
  const { run, train } = await training('removed');
  run.hold = async () => async () => {};
  const seen: string[] = [];
  const read = (name: string | undefined) =>
    whileHeld(run, name, 'test', async (checkpoint) => {
      seen.push(basename(checkpoint.directory));
      if (seen.length < 3) await train();
      return stateOf(checkpoint);
    });
  expect(await read(undefined)).toBe('3');
  expect(seen).toEqual(['step-000001', 'step-000002', 'step-000003']);
  await expect(read('1')).rejects.toThrow(RunError);
});

it('does not repeat work that fails otherwise after the run removed what was read', async () => {
  const { run, train } = await training('failed');
  run.hold = async () => async () => {};
  let attempts = 0;
  const failing = whileHeld(run, undefined, 'test', async () => {
    attempts++;
    await train();
    throw new Error('interrupted');
  });
  await expect(failing).rejects.toThrow('interrupted');
  expect(attempts).toBe(1);
});
