/** A run whose GPU fails, as the command line reports it: `npm run verify -- gpu-run`. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { drmas, plainRecipe } from '../support/command-line.js';
import { eventsOf, filesOf, temporaryRoot } from '../support/tiny-run.js';
import { type Failing, placeOn } from './failing-gpu.js';

const root = temporaryRoot();
const file = join(root, 'recipe.ts');

/** Two agents that write a few letters each. The reward is the number of different letters. */
const recipe = plainRecipe
  .replace('play: async () => 0', 'play: async ({ agents }) => (await agents.solver("a")).text')
  .replace('reward: () => 0', 'reward: ({ outcome }) => new Set(outcome).size / 4')
  .replaceAll('sampling: {}', 'sampling: { maxTokens: 4 }')
  .replace('context: 512', 'context: 64')
  .replace(
    'training: { steps: 3 }',
    `training: { steps: 3, tasksPerStep: 1, groupSize: 3, checkpointEvery: 1 },
    evaluation: { every: 3, tasks: 1, samples: 1 }`,
  );
beforeAll(() => writeFile(file, recipe));

const train = (run: string, failing: Failing = {}) =>
  drmas(['train', file, '--device', 'gpu', '--run', run], {
    place: placeOn(failing),
  });
const resume = (run: string, failing: Failing = {}, ...words: string[]) =>
  drmas(['resume', run, ...words], { place: placeOn(failing) });
const stepsOf = async (run: string) => (await (await RunDirectory.open(run)).checkpoints()).map(({ step }) => step);

describe('a run', () => {
  const whole = join(root, 'whole');
  beforeAll(async () => {
    expect(await train(whole)).toMatchObject({ code: 0 });
  });

  it.each([
    ['is lost', /^error: the GPU was lost: .*\n$/],
    ['is full', /^error: the GPU has too little memory: no \d+ bytes are left\n$/],
    ['refuses a shader', /^error: the GPU refused a shader or a command: .*WGSL.*\n$/],
  ] as const)(
    'whose GPU %s ends with a line, and goes on from its last checkpoint with the same bits',
    async (it, line) => {
      const run = join(root, it);
      const { code, err } = await train(run, { after: { step: 2, it } });
      expect(err).toMatch(line);
      expect(code).toBe(1);
      expect(await stepsOf(run)).toEqual([1, 2]);
      expect(await resume(run)).toMatchObject({ code: 0, err: '' });
      const [ended, expected] = [await RunDirectory.open(run), await RunDirectory.open(whole)];
      expect(await eventsOf(ended)).toEqual(await eventsOf(expected));
      expect(await filesOf(ended)).toEqual(await filesOf(expected));
    },
  );

  it('whose weights no buffer of the GPU holds is refused before anything is there', async () => {
    const run = join(root, 'too large');
    const { code, err } = await train(run, { buffer: 8192 });
    expect(err).toMatch(/a buffer of \d+ bytes: this GPU has none above 8192/);
    expect(code).toBe(1);
    expect(existsSync(run)).toBe(false);
  });

  it('resumes on another GPU, or on a processor, only if that is accepted', async () => {
    const run = join(root, 'moved');
    await train(run, { after: { step: 2, it: 'is lost' } });
    const before = await eventsOf(await RunDirectory.open(run));
    const elsewhere = await resume(run, { name: 'another one' });
    expect(elsewhere.code).toBe(2);
    expect(elsewhere.err).toMatch(
      /was started with webgpu \(wgsl, .*\) kernels, this machine has webgpu \(wgsl, another one\)/,
    );
    expect(elsewhere.err).toMatch(/--accept-changes/);
    const processor = await drmas(['resume', run, '--device', 'cpu']);
    expect(processor.code).toBe(2);
    expect(processor.err).toMatch(/was started with webgpu \(wgsl, .*\) kernels, this machine has (?!webgpu)/);
    expect(await stepsOf(run)).toEqual([1, 2]);
    expect(before.length).toBeGreaterThan(2);
    expect(await resume(run, { name: 'another one' }, '--accept-changes')).toMatchObject({ code: 0 });
    expect(await stepsOf(run)).toEqual([1, 2, 3]);
  });
});
