import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { RunError } from '@drmas/engine/errors';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { started } from '../../../test/fixtures/run-events.js';
import { drmas, plainRecipe } from '../../../test/support/command-line.js';
import { eventually } from '../../../test/support/time-and-chance.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import type { RunPlace } from '../../runs/run/execute/start-run.js';

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

  it.each(['math', 'search'])('knows the recipe %s', async (recipe) => {
    expect(await drmas(['plan', recipe], { place })).toMatchObject({ code: 0, err: '' });
  });
});

describe('the commands after a run', () => {
  const place = { executeRun: async () => {} } satisfies Partial<RunPlace>;

  it.each([
    [['--seed', '3'], '--seed 3 --set advantage.type=grpo', 4],
    [['--set', 'seed=3'], '--seed 3 --set advantage.type=grpo', 4],
    [[], '--set advantage.type=grpo', 2],
  ])('compare estimators with the seed that was typed: %j', async (words, comparison, next) => {
    const run = join(root, `seeded${words.join('')}`);
    const { out } = await drmas(['train', 'math', ...words, '--set', 'training.steps=1', '--run', run], { place });
    const request = '  npx drmas train math --set training.steps=1';
    expect(out).toContain(`\n${request} ${comparison}\n${request} --seed ${next}\n`);
    expect((await drmas(['resume', run], { place })).out).toContain(`\n${request} ${comparison}\n`);
  });
});

describe('train --resume', () => {
  const interrupted: Pick<RunPlace, 'executeRun' | 'requireKernels'> = {
    requireKernels: async () => {}, // the kernels of `started` may be others than this machine's
    executeRun: async (_recipe, log) => {
      log.emit(started);
      throw new RunError('it broke');
    },
  };
  const resumed = (source: string, run: string, ...words: readonly string[]) =>
    drmas(['train', source, '--run', run, '--resume', ...words], { place: interrupted });

  it('refuses a setting that the run was not started with, and another recipe', async () => {
    const run = join(root, 'resumed');
    const begun = ['train', file, '--run', run, '--set', 'training.steps=9', '--seed', '3'];
    await drmas(begun, { place: interrupted });
    for (const words of [[], ['--set', 'training.steps=9'], ['--seed', '3']])
      expect((await resumed(file, run, ...words)).err).toContain('it broke');
    for (const words of [
      ['--set', 'training.steps=5'],
      ['--set', 'nonsense.x=1'],
      ['--seed', '4'],
    ]) {
      const { code, err } = await resumed(file, run, ...words);
      expect(code).toBe(2);
      expect(err).toContain(`was started without ${words.join(' ').replace('--set ', '').replace('--seed ', 'seed=')}`);
    }
    await writeFile(file, `${talkative}\n// changed`);
    onTestFinished(() => writeFile(file, talkative));
    expect((await resumed(file, run)).err).toContain('--accept-changes');
    expect((await resumed(file, run, '--accept-changes')).err).toContain('it broke');
    expect(await drmas(['train', file, '--accept-changes'])).toMatchObject({ code: 2 });
    const math = join(root, 'math');
    await drmas(['train', 'math', '--run', math], { place: interrupted });
    expect(await resumed('gsm8k', math)).toMatchObject({
      code: 2,
      err: expect.stringContaining('is a run of math, not of gsm8k'),
    });
  });
});

describe('train --watch', () => {
  /** Records the life of a dashboard, with what else is appended. */
  function recorded() {
    const life: string[] = [];
    const openDashboard = (say: (message: string) => void) => {
      life.push('opened');
      say('dashboard: http://127.0.0.1:7373/');
      return { show: (run: string) => void life.push(`shows ${run}`), close: () => void life.push('closed') };
    };
    return { life, openDashboard };
  }

  it('opens a dashboard, prints its address, shows the run when it starts, and closes when the run ends or fails', async () => {
    const { life, openDashboard } = recorded();
    const executeRun: RunPlace['executeRun'] = async (_recipe, log) => {
      life.push('executed');
      log.emit(started);
      throw new RunError('it broke');
    };
    const run = join(root, 'watched');
    const request = ['train', file, '--run', run, '--watch', '--json'];
    expect(await drmas(request, { place: { executeRun }, openDashboard })).toMatchObject({
      code: 2,
      out: expect.stringMatching(/^\{"type":"run.started".*\n$/),
      err: expect.stringContaining('dashboard: http://127.0.0.1:7373/'),
    });
    expect(life).toEqual(['opened', `shows ${run}`, 'executed', 'closed']);
  });

  it('opens the dashboard before it reads the recipe, and closes it when the request is refused', async () => {
    const { life, openDashboard } = recorded();
    const global = globalThis as { readRecipe?: () => void };
    global.readRecipe = () => void life.push('recipe read');
    const wrong = join(root, 'wrong.ts');
    await writeFile(wrong, `globalThis.readRecipe();\n${plainRecipe.replace('steps: 3', 'steps: -3')}`);
    const run = join(root, 'refused');
    const refused = await drmas(['train', wrong, '--run', run, '--watch'], { openDashboard });
    expect(refused).toMatchObject({ code: 2, out: 'dashboard: http://127.0.0.1:7373/\n' });
    expect(refused.err).toContain('training.steps');
    expect(life).toEqual(['opened', 'recipe read', 'closed']);
    expect(existsSync(run)).toBe(false);
  });

  it('serves a page of the run that is being prepared, until Ctrl-C', {
    tags: 'verify',
  }, async () => {
    const slow = join(root, 'slow.mts');
    await writeFile(slow, `await new Promise((resolve) => setTimeout(resolve, 600_000));\n${plainRecipe}`);
    const main = fileURLToPath(new URL('../main.ts', import.meta.url));
    const words = ['train', slow, '--run', join(root, 'prepared'), '--watch'];
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), main, ...words], { cwd: root });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = await once(createInterface(child.stdout), 'line');
    const url = /^dashboard: (http:\S+)$/.exec(String(line))?.[1] ?? '';
    expect((await fetch(url)).status).toBe(200);
    const stream = await fetch(`${url}api/stream`);
    const first = await stream.body?.getReader().read();
    expect(new TextDecoder().decode(first?.value)).toContain('"preparing":true');
    child.kill('SIGINT');
    expect(await once(child, 'close')).toEqual([130, null]);
    await eventually(() => expect(fetch(url)).rejects.toThrow('fetch failed'));
  });
});
