import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CheckpointError } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { fakeRun } from '../../../test/support/fake-run.js';
import { temporaryRoot, tinyModel, tinyRecipe, watchedRun } from '../../../test/support/tiny-run.js';
import { frozen } from '../recipe/frozen.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import { checkpointDue, commitsOf, loadCheckpoint, saveCheckpoint, warmStartOf } from './checkpoint.js';
import { firstProgress, type Progress } from './state/progress.js';

const root = temporaryRoot();
const kl = { coefficient: 0.5, in: 'reward', controller: { type: 'adaptive', target: 1, horizon: 10 } } as const;
const recipe = tinyRecipe({
  assign: { solver: 'one', verifier: frozen(tinyModel) },
  policies: { one: { kl } },
} as object);

const one = { name: 'one', kl: recipe.policies.one?.kl };

/** A run that notes what its backend saves and loads. */
async function runOf(chosen = recipe) {
  const moves: unknown[] = [];
  const note =
    (what: string) =>
    async (name: string, directory: string, { optimizer }: { readonly optimizer: boolean }) =>
      void moves.push([what, name, directory.split('/').slice(-1)[0], optimizer]);
  const faked = await fakeRun(root, chosen, () => '1', { save: note('save'), load: note('load') });
  return { ...faked, run: { ...faked.run, commits: { 'org/model': 'abc123' } }, moves };
}

/** Progress in the middle of a run. No part of it is empty. */
function progressAt(step: number): Progress {
  const progress: Progress = { ...firstProgress(watchedRun(recipe), 'a-warm-start'), step, evaluated: 2 };
  progress.kl.observe(one, 100, 5);
  return progress;
}

async function latest(log: { latestCheckpoint(): Promise<Checkpoint | undefined> }): Promise<Checkpoint> {
  const checkpoint = await log.latestCheckpoint();
  if (checkpoint === undefined) throw new Error('expected a checkpoint');
  return checkpoint;
}

describe('checkpointDue', () => {
  it('is written every N steps and at the end, never before the first step', () => {
    const every = tinyRecipe({}, ['training.steps=5', 'training.checkpointEvery=2']);
    const { stops } = firstProgress(watchedRun(every));
    const due = [0, 1, 2, 3, 4, 5].filter((step) => checkpointDue(every.training, { step, stops }));
    expect(due).toEqual([2, 4, 5]);
  });

  it('is written before the first step if the recipe keeps it, or if there are no steps', () => {
    const dueAtFirst = (overrides: readonly string[]) => {
      const recipe = tinyRecipe({}, overrides);
      return checkpointDue(recipe.training, firstProgress(watchedRun(recipe)));
    };
    expect(dueAtFirst(['training.keepFirst=true'])).toBe(true);
    expect(dueAtFirst(['training.steps=0'])).toBe(true);
    expect(dueAtFirst([])).toBe(false);
  });
});

describe('a checkpoint', () => {
  it('restores the progress, and the models with their optimisers', async () => {
    const { run, log, moves } = await runOf();
    const progress = progressAt(3);
    await saveCheckpoint(run, progress, log);
    expect(moves).toEqual([
      ['save', 'one', 'one', true],
      ['save', 'verifier', 'verifier', false], // frozen, but its weights are nowhere else
    ]);
    expect((await log.events()).at(-1)).toMatchObject({ type: 'checkpoint', step: 3, path: 'checkpoints/step-000003' });
    const checkpoint = await latest(log);
    moves.length = 0;
    const loaded = await loadCheckpoint(run, checkpoint, { optimizer: true });
    expect(moves).toEqual([
      ['load', 'one', 'one', true],
      ['load', 'verifier', 'verifier', false],
    ]);
    expect(loaded).toMatchObject({ step: 3, evaluated: 2, warmStart: 'a-warm-start' });
    expect(await warmStartOf(nodeFiles, checkpoint)).toBe('a-warm-start');
    expect(loaded.watch.state).toEqual(progress.watch.state);
    expect(loaded.kl.of(one)).toBe(progress.kl.of(one));
    expect(loaded.kl.of(one)).not.toBe(kl.coefficient);
    expect(await commitsOf(nodeFiles, checkpoint)).toEqual({ 'org/model': 'abc123' });
    expect(await commitsOf(nodeFiles, undefined)).toEqual({});
  });

  it('of the beginning stays if the recipe keeps it, also after an interruption', async () => {
    const keeping = tinyRecipe({}, ['training.keepFirst=true', 'training.keepCheckpoints=1']);
    const { run, log } = await runOf(keeping);
    const kept = async () => (await log.checkpoints()).map(({ step }) => step);
    await saveCheckpoint(run, firstProgress(watchedRun(keeping)), log);
    await saveCheckpoint(run, { ...firstProgress(watchedRun(keeping)), step: 3 }, log);
    expect(await kept()).toEqual([0, 3]);
    await saveCheckpoint(run, { ...firstProgress(watchedRun(keeping)), step: 5 }, log, { interrupted: true });
    expect(await kept()).toEqual([0, 5]);
  });

  it('does not exist if writing it fails', async () => {
    const save = () => Promise.reject(new Error('disk full'));
    const { run, log } = await fakeRun(root, recipe, () => '1', { save });
    await expect(saveCheckpoint(run, progressAt(2), log)).rejects.toThrow('disk full');
    expect(await log.latestCheckpoint()).toBeUndefined();
    expect(await log.events()).toEqual([]);
  });

  it('of an interruption is replaced by the checkpoint at the end of the step', async () => {
    const { run, log } = await runOf();
    await saveCheckpoint(run, progressAt(2), log, { interrupted: true });
    const { directory } = await latest(log);
    await saveCheckpoint(run, { ...progressAt(2), evaluated: 1 }, log);
    expect(JSON.parse(await readFile(join(directory, 'state.json'), 'utf8'))).toMatchObject({ evaluated: 1 });
    await saveCheckpoint(run, { ...progressAt(2), evaluated: 0 }, log); // equal steps of one run have equal states
    expect(JSON.parse(await readFile(join(directory, 'state.json'), 'utf8'))).toMatchObject({ evaluated: 1 });
  });

  it('without one of the models is refused with its name', async () => {
    const { run, log } = await runOf();
    await saveCheckpoint(run, progressAt(2), log);
    const trained = run.trained.map((model) => ({ ...model, name: `${model.name}-2` }));
    const loading = loadCheckpoint({ ...run, trained }, await latest(log), { optimizer: true });
    await expect(loading).rejects.toThrow(/step-000002 has no model 'one-2': the recipe had other policies/);
  });

  it.each([
    ['no JSON', '{'],
    ['a negative step', '{"step":-1,"evaluated":0,"watch":{"norms":{},"dropped":{}}}'],
    ['nothing of the watch', '{"step":1,"evaluated":0}'],
  ])('whose state is %s is refused with its path', async (_, text) => {
    const { run, log } = await runOf();
    await saveCheckpoint(run, progressAt(2), log);
    const checkpoint = await latest(log);
    await writeFile(join(checkpoint.directory, 'state.json'), text);
    const loading = loadCheckpoint(run, checkpoint, { optimizer: true });
    await expect(loading).rejects.toThrow(CheckpointError);
    await expect(loading).rejects.toThrow(
      `${join(checkpoint.directory, 'state.json')} is not the state of a checkpoint`,
    );
    await expect(commitsOf(nodeFiles, checkpoint)).rejects.toThrow(CheckpointError);
  });
});
