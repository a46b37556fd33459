// @module-tag verify
/** Numbers that are not finite are neither trained on nor saved: the run fails, naming policy and tensor. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NonFiniteError } from '@drmas/engine/errors';
import { expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { resume, train } from '../../src/runs/run/api.js';
import { temporaryRoot, tinyDefinition } from '../support/tiny-run.js';

const root = temporaryRoot();
let runs = 0;

async function failing(changes: Partial<RecipeInput>, set: readonly string[]) {
  const run = join(root, `run-${runs++}`);
  const error = await train(tinyDefinition(changes), { run, set, threads: 1 }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(NonFiniteError);
  expect((await (await RunDirectory.open(run)).events()).at(-1)).toMatchObject({ reason: 'failed', steps: 0 });
  expect(await readdir(join(run, 'checkpoints'))).toEqual([]);
  return (error as Error).message;
}

it('an update that overflows the weights ends the run before anything of it is saved', async () => {
  const huge = ['policies.solver.optimizer.learningRate=3e38', 'policies.solver.optimizer.weightDecay=3e38'];
  expect(await failing({}, huge)).toMatch(/^policy 'solver': a weight of (layers\.0\.)?\w+ is (-?Infinity|NaN)$/);
});

it('so does an update that overflows the weights of a critic', async () => {
  const critic = { optimizer: { learningRate: 3e38, weightDecay: 3e38 } };
  const message = await failing({ advantage: { type: 'gae' }, policies: { solver: { critic } } }, []);
  expect(message).toMatch(/^the critic of policy 'solver': a weight of [\w.]+ is (-?Infinity|NaN)$/);
});

it('moments that are no numbers in a checkpoint without digests are refused at the next update', async () => {
  const run = join(root, 'moments');
  const enough = new AbortController();
  const write = (event: { type: string }) => event.type === 'checkpoint' && enough.abort(new Error('enough'));
  const training = train(tinyDefinition(), { run, threads: 1, sinks: [{ write }], signal: enough.signal });
  await expect(training).rejects.toThrow('enough');
  const checkpoint = join(run, 'checkpoints', 'step-000002');
  const cursor = JSON.parse(await readFile(join(checkpoint, 'cursor.json'), 'utf8'));
  await writeFile(join(checkpoint, 'cursor.json'), JSON.stringify({ ...cursor, version: 1 }));
  const seal = join(checkpoint, 'digests.json');
  await rm(seal);
  const file = join(checkpoint, 'verifier', 'optimizer.safetensors');
  const bytes = await readFile(file);
  bytes.writeFloatLE(Number.NaN, bytes.length - 4); // the last number of the second moment
  await writeFile(file, bytes);
  const error = await resume(run, tinyDefinition(), { threads: 1 }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(NonFiniteError);
  expect((error as Error).message).toMatch(/^policy 'verifier': .* is NaN$/);
  expect(await readdir(join(run, 'checkpoints'))).toEqual(['step-000002']);
});
