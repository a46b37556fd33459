import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { drmas, plainRecipe } from '../../test/support/command-line.js';
import { quickWork } from '../../test/support/quick-work.js';
import { temporaryRoot } from '../../test/support/tiny-run.js';
import type { Recipe } from '../recipe/recipe.js';
import { commands } from './commands/index.js';
import { device } from './flags.js';
import type { Work } from './wiring.js';

const root = temporaryRoot();
const file = join(root, 'pair.ts');
beforeAll(() => writeFile(file, plainRecipe));

/** Work that does nothing but remember the recipes that it was given, and the host's device. */
function noted() {
  const devices: unknown[] = [];
  const note = ({ backend }: Recipe, host: unknown = {}) => {
    devices.push((host as { device?: unknown }).device ?? ('device' in backend ? backend.device : undefined));
    throw new Error('noted');
  };
  const work = {
    requireKernels: async () => {},
    executeRun: async (recipe, log, host, begun) => {
      const { device: wanted } = host;
      devices.push(wanted ?? ('device' in recipe.backend ? recipe.backend.device : undefined));
      await quickWork.executeRun(recipe, log, host, begun);
    },
    evaluateCheckpoint: async (recipe) => note(recipe),
    planRun: async (recipe) => note(recipe),
    probeRecipe: async (recipe) => note(recipe),
    forecastRun: async (recipe) => note(recipe),
  } satisfies Partial<Work>;
  return { devices, work };
}

describe('--device', () => {
  it('is one flag of all commands that compute, and of those alone', () => {
    const computing = commands.filter(({ flags }) => flags.threads !== undefined).map(({ name }) => name);
    const flagged = commands.filter(({ flags }) => flags.device === device).map(({ name }) => name);
    expect(flagged).toEqual(computing.filter((name) => name !== 'watch')); // which answers beside a training
    expect(commands.filter(({ flags }) => flags.device !== undefined)).toHaveLength(flagged.length);
  });

  it.each([
    ['train', file, '--run', join(root, 'trained')],
    ['train', file, '--dry-run'],
    ['probe', file],
    ['plan', file],
    ['compare', file, '--run', join(root, 'compared')],
    ['ablate', file, '--vary', 'training.steps=1,2', '--seeds', '1', '--run', join(root, 'ablated')],
    ['evaluate', join(root, 'trained')],
  ])('%s computes where it says', async (...words) => {
    const { devices, work } = noted();
    await drmas([...words, '--device', 'gpu'], { work });
    expect(new Set(devices)).toEqual(new Set(['gpu']));
  });

  it('of resume says what computes from now on, and is typed again', async () => {
    const run = join(root, 'resumed');
    const interruption = new AbortController();
    const { devices, work } = noted();
    const executeRun: Work['executeRun'] = async (recipe, log, host, begun) => {
      interruption.abort(new Error('interrupted'));
      await work.executeRun(recipe, log, host, begun);
    };
    const typed = { work: { ...work, executeRun }, signal: interruption.signal };
    expect((await drmas(['train', file, '--run', run], typed)).out).not.toContain('--device');
    expect((await drmas(['resume', run, '--device', 'gpu'], typed)).out).toMatch(/drmas resume .* --device gpu/);
    await drmas(['resume', run], { work });
    expect(devices).toEqual([undefined, 'gpu', undefined]);
  });

  it('refuses what is no device, before anything is done', async () => {
    const { devices, work } = noted();
    expect(await drmas(['train', file, '--device', 'tpu'], { work })).toMatchObject({
      ...{ code: 2, err: expect.stringMatching(/'tpu' is invalid.*cpu, gpu/) },
    });
    expect(devices).toEqual([]);
  });
});
