import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { started } from '../../../test/fixtures/run-events.js';
import { drmas, plainRecipe } from '../../../test/support/command-line.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { RunError } from '../../base/core/errors.js';
import type { RunPlace } from '../../runs/run/start-run.js';

const root = temporaryRoot();
const file = join(root, 'mine.ts');
const talkative = plainRecipe
  .replace('play: async () => 0', 'play: async ({ agents }) => { await agents.solver("Hello?"); return 0; }')
  .replaceAll('sampling: {}', 'sampling: { maxTokens: 4 }');
beforeAll(() => writeFile(file, talkative));

describe('plan', () => {
  const place = { executeRun: () => Promise.reject(new Error('something was started')) };

  it('prints the forecast of the run, for people', async () => {
    const { code, out, err } = await drmas(['plan', file], { place });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    // How much the engine takes for a batch is its own affair.
    expect(out.replaceAll(/[\d.]+ [kM]?B\b/g, '1.0 MB').replaceAll(/ {2,}/g, '  ')).toMatchSnapshot();
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('and for programs', async () => {
    const { code, out } = await drmas(['plan', file, '--json'], { place });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      type: 'plan',
      backend: 'embedded',
      steps: 3,
      tokens: {
        episodes: { step: 128, training: 384 },
        policies: { solver: { samples: 128 }, verifier: { samples: 0 } },
      },
    });
  });

  it('is the former train --dry-run', async () => {
    const run = join(root, 'never');
    const { code, out, err } = await drmas(['train', file, '--dry-run', '--run', run], { place });
    expect({ code, err }).toEqual({
      code: 0,
      err: '--dry-run is now drmas plan; the old name works in this version only\n',
    });
    expect(out).toBe((await drmas(['plan', file], { place })).out);
    expect(existsSync(run)).toBe(false);
  });

  it.each(['math', 'search'])('knows the recipe %s', async (recipe) => {
    expect(await drmas(['plan', recipe], { place })).toMatchObject({ code: 0, err: '' });
  });
});

describe('train --watch', () => {
  it('opens a dashboard when the run has started, prints its address, and closes it when the run ends or fails', async () => {
    const opened: string[] = [];
    const openDashboard = (run: string, say: (message: string) => void) => {
      say('dashboard: http://127.0.0.1:7373/');
      opened.push(`opened ${run}`);
      return () => void opened.push('closed');
    };
    const executeRun: RunPlace['executeRun'] = async (_recipe, log) => {
      log.emit(started);
      throw new RunError('it broke');
    };
    const run = join(root, 'watched');
    const request = ['train', file, '--run', run, '--watch', '--json'];
    const failed = await drmas(request, { place: { executeRun }, openDashboard });
    expect(failed).toMatchObject({
      code: 2,
      out: expect.stringMatching(/^\{"type":"run.started".*\n$/),
      err: expect.stringContaining('dashboard: http://127.0.0.1:7373/'),
    });
    expect(opened).toEqual([`opened ${run}`, 'closed']);
    expect((await drmas(['train', file, '--run', run, '--watch'], { openDashboard })).code).toBe(2);
    expect(opened).toHaveLength(2); // that run is there already: nothing began
  });
});
