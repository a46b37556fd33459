import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { shellWord } from '@drmas/engine/host';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { drmas, foldedText, plainRecipe } from '../../../test/support/command-line.js';
import { quickPlace } from '../../../test/support/quick-place.js';

let root: string;
let file: string;
let run: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-compare-'));
  file = join(root, 'mine.ts');
  run = join(root, 'comparison');
  await writeFile(file, plainRecipe);
});
afterEach(() => rm(root, { recursive: true }));

const compare = (words: readonly string[] = [], typed: Parameters<typeof drmas>[1] = {}) =>
  drmas(['compare', file, '--parallel', '1', '--run', run, ...words], { place: quickPlace, ...typed });
/** The output without lines of progress, which depend on the speed. */
const steady = (out: string) =>
  out
    .replaceAll(/ \\\n +(?=\S)/g, ' ')
    .replaceAll(shellWord(run), 'DIRECTORY')
    .replaceAll(foldedText(run), 'DIRECTORY')
    .replaceAll(/\n\w+ \d+\/3 reward .* left(?=\n)/g, '');
const recordOf = async (name: string) => JSON.parse(await readFile(join(run, name, 'recipe.json'), 'utf8'));

describe('compare', () => {
  it('shows Dr. MAS and GRPO side by side', async () => {
    const { code, out, err } = await compare();
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(steady(out)).toMatchSnapshot();
  });

  it('makes runs like any other, with the seed that was asked for', async () => {
    expect((await compare(['--seed', '7'])).code).toBe(0);
    const [drMas, grpo] = [await recordOf('drmas-seed-7'), await recordOf('grpo-seed-7')];
    expect([drMas.resolved.seed, grpo.resolved.seed]).toEqual([7, 7]);
    expect([drMas.resolved.advantage.type, grpo.resolved.advantage.type]).toEqual(['drmas', 'grpo']);
    const { out } = await drmas(['runs', run, '--json'], { place: quickPlace });
    const listed = JSON.parse(out).runs.map(({ path }: { readonly path: string }) => basename(path));
    expect(listed.sort()).toEqual(['drmas-seed-7', 'grpo-seed-7']);
  });

  it('names the commands for runs that are there, and takes one recipe', async () => {
    expect((await compare()).code).toBe(0);
    const [one, two] = ['drmas', 'grpo'].map((name) => join(run, `${name}-seed-1`)) as [string, string];
    const refused = async (...words: string[]) => {
      const { code, out, err } = await drmas(['compare', ...words], { place: quickPlace });
      expect({ code, out }).toEqual({ code: 2, out: '' });
      return err;
    };
    expect(await refused(one, two)).toContain(`npx drmas report ${shellWord(one)} ${shellWord(two)} writes one page`);
    expect(await refused(one)).toContain(`npx drmas report ${shellWord(one)} '<another run>'`);
    expect(await refused(file, one)).toContain('npx drmas report');
    expect(await refused(file, 'math')).toContain('compare takes one recipe');
    expect(existsSync(join(root, 'runs'))).toBe(false);
  });

  it('compares other values, and any number of them', async () => {
    const { code, out } = await compare(['--vary', 'training.groupSize=2,4,8', '--set', 'training.steps=2']);
    expect(code).toBe(0);
    expect(out).toMatch(/^held out +2 +4 +8$/m);
    expect(out).toMatch(/^4 ends as high as 2: one pair/m);
    expect(existsSync(join(run, '8-seed-1'))).toBe(true);
  });

  it('prints with --json the events of the runs and the comparison, and nothing else', async () => {
    const { code, out } = await compare(['--json']);
    expect(code).toBe(0);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(new Set(lines.slice(0, -1).map((line) => line.run))).toEqual(new Set(['drmas-seed-1', 'grpo-seed-1']));
    const { type, variants, differences } = lines.at(-1);
    expect([type, differences]).toMatchObject(['comparison', [{ variant: 'drmas', baseline: 'grpo' }]]);
    expect(variants[0].curve).toEqual({
      rewards: [0.605, 0.61, 0.615],
      evaluations: [
        { step: 0, score: 0.1 },
        { step: 3, score: expect.closeTo(0.16) },
      ],
    });
    expect(variants[0].agents.verifier).toMatchObject({ first: { invalid: 0.03 }, last: { norm: 0.92 } });
  });

  it('resumes after an interruption, and as an ablation of more pairs', async () => {
    const controller = new AbortController();
    const executeRun: typeof quickPlace.executeRun = async (...job) => {
      await quickPlace.executeRun(...job);
      controller.abort(new Error('interrupted'));
    };
    const first = await compare(['--seed', '2'], { place: { ...quickPlace, executeRun }, signal: controller.signal });
    expect(first.code).toBe(130);
    expect(first.out).toMatch(/interrupted; resume with: npx drmas compare .*comparison'?\n$/);
    const second = await drmas(['compare', run], { place: quickPlace });
    expect(second.code).toBe(0);
    expect(steady(second.out)).toMatch(/^step 0 +20\.0 % +20\.0 %\nstep 3 +26\.0 % +20\.0 %$/m);
    expect(second.out).toMatch(/^drmas ends 6\.0 points above grpo: one pair/m);
    const refused = await drmas(['compare', run, '--seed', '3'], { place: quickPlace });
    expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(/it resumes with its own settings/) });
    const more = await drmas(['ablate', run, '--seeds', '2', '--parallel', '1'], { place: quickPlace });
    expect(more.out).toMatch(/drmas - grpo +\+6\.0 +\[\+6\.0, \+6\.0\] +p 0\.50 +better in 2 of 2 +too few pairs/);
    expect(existsSync(join(run, 'grpo-seed-3'))).toBe(true);
    const both = await drmas(['compare', run], { place: quickPlace });
    expect(both.out).toMatch(/^drmas ends 6\.0 points above grpo over 2 pairs, \[\+6\.0, \+6\.0\]/m);
  });

  it('names the run that failed, and ends with 1', async () => {
    const executeRun: typeof quickPlace.executeRun = async (recipe, ...rest) => {
      if (recipe.advantage.type === 'grpo') throw new Error('the norm is too large');
      await quickPlace.executeRun(recipe, ...rest);
    };
    const { code, out } = await compare([], { place: { ...quickPlace, executeRun } });
    expect(code).toBe(1);
    expect(out).toMatch(/grpo, pair 1: failed: the norm is too large\n\nnext/);
  });

  it.each([
    [['--vary', 'advantage.type=drmas'], /at least two values to compare/],
    [['--vary', 'advantage.type=drmas,grppo'], /grppo/],
    [['--seed', '-1'], /expected an integer >= 0, got '-1'/],
  ])('refuses %j and creates nothing', async (words, message) => {
    const { code, out, err } = await compare(words);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
    expect(existsSync(run)).toBe(false);
  });
});
