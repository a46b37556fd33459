import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { shellWord } from '@drmas/engine/host';
import { nodeFiles } from '@drmas/engine/platform';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { evaluation, finished, started } from '../../../test/fixtures/run-events.js';
import { drmas, foldedText, plainRecipe } from '../../../test/support/command-line.js';
import { quickPlace } from '../../../test/support/quick-place.js';
import { lockRun } from '../../method/store/run-lock.js';
import { ablateIn } from '../../runs/studies/ablation/ablate.js';

let root: string;
let file: string;
let run: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-ablate-'));
  file = join(root, 'mine.ts');
  run = join(root, 'ablation');
  await writeFile(file, plainRecipe);
});
afterEach(() => rm(root, { recursive: true }));

const vary = ['--vary', 'advantage.type=grpo,drmas'];
const pairs = ['--seeds', '2', '--parallel', '1'];

describe('ablate', () => {
  it('prints the progress and compares at the end', async () => {
    const { code, out, err } = await drmas(['ablate', file, ...vary, ...pairs, '--run', run], { place: quickPlace });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const shown = out
      .replaceAll(/\(\d+\.\d s\)/g, '(0.0 s)')
      .replaceAll(/ \\\n +/g, ' ') // a long command is continued on the next line
      .replaceAll(shellWord(run), 'DIRECTORY')
      .replaceAll(foldedText(` ${run}`), ' DIRECTORY');
    expect(shown).toMatchSnapshot();
  });

  it('prints with --json the events of every run and the comparison, and nothing else', async () => {
    const { code, out } = await drmas(['ablate', file, ...vary, ...pairs, '--run', run, '--json'], {
      place: quickPlace,
    });
    expect(code).toBe(0);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const events = (await readFile(join(run, 'drmas-seed-2', 'events.jsonl'), 'utf8')).trim().split('\n');
    expect(lines.filter((line) => line.run === 'drmas-seed-2')).toEqual(
      events.map((event) => ({ run: 'drmas-seed-2', ...JSON.parse(event) })),
    );
    expect(lines.at(-1)).toMatchObject({ type: 'ablation', baseline: 'grpo', differences: [{ pairs: 2 }] });
  });

  it('is refused before any work while another process trains the same ablation', async () => {
    const first = await drmas(['ablate', file, ...vary, ...pairs, '--run', run], { place: quickPlace });
    expect(first.code).toBe(0);
    const before = await readFile(join(run, 'ablation.json'), 'utf8');
    await rm(file); // the second one does not even load the recipe
    const lock = await lockRun(nodeFiles, run);
    for (const words of [
      [run, '--seeds', '3'],
      [file, ...vary, '--run', run],
    ]) {
      const { code, out, err } = await drmas(['ablate', ...words], { place: quickPlace });
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toMatch(/ablation is being written by this process itself, since .*wait until it has ended/);
    }
    await lock.release();
    expect(await readFile(join(run, 'ablation.json'), 'utf8')).toBe(before);
  });

  it('resumes an ablation by its directory', async () => {
    const controller = new AbortController();
    const executeRun: typeof quickPlace.executeRun = async (...job) => {
      await quickPlace.executeRun(...job);
      controller.abort(new Error('interrupted'));
    };
    const first = await drmas(['ablate', file, ...vary, ...pairs, '--run', run], {
      place: { ...quickPlace, executeRun },
      signal: controller.signal,
    });
    expect(first.code).toBe(130);
    expect(first.out).toMatch(/interrupted; resume with: npx drmas ablate .*ablation'?\n$/);
    const second = await drmas(['ablate', run, '--seeds', '3'], { place: quickPlace });
    expect(second.code).toBe(0);
    expect(second.out).not.toMatch(/grpo, pair 1: begins/);
    expect(second.out).toMatch(/drmas - grpo +\+6\.0 +\[\+6\.0, \+6\.0\] +p 0\.25 +better in 3 of 3 +too few pairs/);
    const refused = await drmas(['ablate', run, '--set', 'training.steps=4'], { place: quickPlace });
    expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(/it resumes with its own settings/) });
  });

  it('resumes with the values that it was begun with, whatever is in them', async () => {
    await writeFile(file, plainRecipe.replace('data: 0', "data: { 'a,b': 1, c: 2 }"));
    const values = ['a,b', 'c'];
    const vary = { 'training.curriculum.by': values };
    const set = ['training.curriculum={"by":"c"}'];
    await ablateIn(quickPlace, file, { vary, set, seeds: 1, run, parallel: 1 });
    const before = await readFile(join(run, 'ablation.json'), 'utf8');
    const { code, out } = await drmas(['ablate', run], { place: quickPlace });
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringMatching(/^2 runs/) });
    expect(await readFile(join(run, 'ablation.json'), 'utf8')).toBe(before);
  });

  it('is refused when a file of its tasks has changed', async () => {
    const origin = (sha256: string) => ({ name: 'tasks.jsonl', files: { 'tasks.jsonl': sha256 } });
    const load = 'load: async () => ({ origins: [JSON.parse(process.env.ORIGIN)],';
    await writeFile(file, plainRecipe.replace('load: async () => ({', load));
    const executeRun: typeof quickPlace.executeRun = async (_, log) => {
      log.emit({ ...started, data: [origin('a')] });
      log.emit(finished);
    };
    const place = { ...quickPlace, executeRun };
    vi.stubEnv('ORIGIN', JSON.stringify(origin('a')));
    expect((await drmas(['ablate', file, ...vary, ...pairs, '--run', run], { place })).code).toBe(0);
    expect((await drmas(['ablate', run, '--seeds', '3'], { place })).code).toBe(0);
    vi.stubEnv('ORIGIN', JSON.stringify(origin('b')));
    const { code, err } = await drmas(['ablate', run, '--seeds', '4'], { place });
    vi.unstubAllEnvs();
    expect({ code, err }).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^error: the file of tasks tasks\.jsonl has changed since .*grpo-seed-1 was started/),
    });
    expect(existsSync(join(run, 'grpo-seed-4'))).toBe(false);
  });

  it('says that no difference is shown', async () => {
    const executeRun: typeof quickPlace.executeRun = (recipe, ...rest) =>
      quickPlace.executeRun({ ...recipe, advantage: { type: 'magrpo', gamma: 1, singleton: 'zero' } }, ...rest);
    const words = ['ablate', file, ...vary, '--parallel', '1', '--run', run];
    const { out } = await drmas(words, { place: { ...quickPlace, executeRun } });
    expect(out).toMatch(/drmas - grpo +\+0\.0 +\[\+0\.0, \+0\.0\] +p 1\.00 +better in 0 of 6 +no difference shown\n/);
  });

  it('compares metrics too, if the team has some', async () => {
    const executeRun: typeof quickPlace.executeRun = async ({ seed, advantage }, run) => {
      const swift = 0.1 * seed + (advantage.type === 'drmas' ? 0.25 : 0);
      run.emit({ ...evaluation(3, 0.5), metrics: { swift } });
    };
    const words = ['ablate', file, ...vary, ...pairs, '--run', run];
    const { out } = await drmas(words, { place: { ...quickPlace, executeRun } });
    expect(out).toMatch(/last evaluation +grpo +drmas\nswift +0\.15 +0\.40\n/);
    expect(out).toMatch(
      /differences of metrics, with 95 % .* exact p\n +swift: drmas - grpo +\+0\.25 +\[\+0\.25, \+0\.25\] +p 0\.50 +better in 2 of 2/,
    );
  });

  it('ends with 1 when a run failed, and names the run', async () => {
    const executeRun: typeof quickPlace.executeRun = async (recipe, ...rest) => {
      if (recipe.seed === 2 && recipe.advantage.type === 'grpo') throw new Error('the norm is too large');
      await quickPlace.executeRun(recipe, ...rest);
    };
    const words = ['ablate', file, ...vary, ...pairs, '--run', run];
    const { code, out } = await drmas(words, { place: { ...quickPlace, executeRun } });
    expect(code).toBe(1);
    expect(out).toMatch(/drmas - grpo +\+6\.0 +better in 1 of 1 +too few pairs/);
    expect(out).toMatch(/grpo, pair 2: failed: the norm is too large\n\nruns in/);
  });

  it.each([
    [['FILE'], /at least two values to compare/],
    [['FILE', '--vary', 'advantage.type=grpo,drmass'], /advantage\.type: .*'drmass'|"drmass"/],
    [['no-such-recipe', ...vary], /there is no recipe 'no-such-recipe'/],
    [['FILE', ...vary, '--seeds', '0'], /expected an integer >= 1, got '0'/],
  ])('refuses %j and creates nothing', async (words, message) => {
    const given = words.map((word) => (word === 'FILE' ? file : word));
    const { code, out, err } = await drmas(['ablate', ...given, '--run', run], { place: quickPlace });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
    expect(existsSync(run)).toBe(false);
  });
});
