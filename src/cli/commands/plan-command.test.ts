import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { drmas, plainRecipe } from '../../../test/support/command-line.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import type { RunForecast } from '../../runs/studies/plan/forecast-run.js';
import { measuredLines } from '../reporter/planning/forecast-printer.js';
import { planLines } from '../reporter/planning/plan-printer.js';

const root = temporaryRoot();
const file = join(root, 'mine.ts');
const saved = join(root, 'here.json');
const talkative = plainRecipe
  .replace(
    'play: async () => 0',
    'play: async ({ agents }) => { await agents.solver("Hello?"); await agents.verifier("Well?"); return Math.random(); }',
  )
  .replace('reward: () => 0', 'reward: ({ outcome }) => outcome')
  .replaceAll('sampling: {}', 'sampling: { maxTokens: 4 }')
  .replace(
    'training: { steps: 3 }',
    'training: { steps: 3, tasksPerStep: 2, groupSize: 3 }, evaluation: { tasks: 2, samples: 1 }',
  );
const failed = (): never => {
  throw new Error('nothing was forecast');
};
beforeAll(() => writeFile(file, talkative));

describe('plan --measure', () => {
  it('prints tokens, memory and hours for more and fewer concurrent episodes', async () => {
    const { code, out, err } = await drmas(['plan', file, '--measure', '--seconds', '1', '--save', saved]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/recipe +mine, on [\s\S]*episodes +18 in 3 steps, 4 in evaluations/);
    expect(out).toMatch(/the run +about .* on this machine, .* a step/);
    expect(out).toMatch(/at once +a step +the run +ahead\n1 .*\n10 .*\n100 .*\n1,000 .*\n10,000 /);
    const machine = JSON.parse(await readFile(saved, 'utf8'));
    expect(machine).toMatchObject({ recipe: 'mine', shared: true, sampling: { engines: 1 } });
  });

  it('forecasts for a machine that a file describes, with its price', async () => {
    const rented = join(root, 'rented.json');
    const slow = { iterationSeconds: 1, sequenceSeconds: 0, promptTokenSeconds: 0 };
    const machine = {
      ...{ name: 'rented', sampling: slow, training: { tokenSeconds: 0, updateSeconds: 8 } },
      ...{ transferSeconds: 2, pricePerHour: 360, memoryBytes: 1 },
    };
    await writeFile(rented, JSON.stringify(machine));
    const words = ['plan', file, '--seconds', '1', '--machine', rented, '--concurrency', '6', '--json'];
    const { code, out } = await drmas(words);
    expect(code).toBe(0);
    const { type, ...forecast } = JSON.parse(out) as RunForecast & { readonly type: string };
    expect(type).toBe('plan');
    const lines = planLines(forecast, 50);
    const { measured = failed() } = forecast;
    expect(Math.max(...measuredLines(measured, 50).map((line) => line.length))).toBeLessThanOrEqual(50);
    expect(lines).toEqual(expect.arrayContaining(measuredLines(measured, 50)));
    expect(lines.join('\n')).toMatch(/rented\nat once +a step +the run +ahead +price\n6 /);
    expect(lines).toContain('Its memory is less than the run needs.');
    const [, elsewhere] = forecast.measured?.machines ?? [];
    expect(elsewhere).toMatchObject({ name: 'rented', fits: false, forecasts: [{ atOnce: 6, stepEpisodes: 6 }] });
    const [{ synchronous, ahead } = failed()] = elsewhere?.forecasts ?? [];
    // Two answers of at most four tokens, an update and a transfer; two evaluations.
    expect(synchronous.stepSeconds).toBeGreaterThan(10 + 2);
    expect(synchronous.stepSeconds).toBeLessThan(10 + 8 + 1);
    expect(ahead.seconds).toBeLessThan(synchronous.seconds);
    expect(synchronous.price).toBeCloseTo(synchronous.seconds / 10, 9);
  });

  it.each([
    [['--machine', '/no/such.json'], /cannot be read as a machine file/],
    [['--machine', 'FILE'], /mine\.ts cannot be read as a machine file/],
    [['--concurrency', '1,x'], /--concurrency.*expected integers from 1 to 100000, such as 1,16,256, got '1,x'/],
    [['--concurrency', '0'], /expected integers from 1 to 100000/],
    [['--tasks', '4'], /--tasks and --from need --play/],
  ])('refuses %j', async (words, message) => {
    const { code, out, err } = await drmas(['plan', file, ...words.map((word) => (word === 'FILE' ? file : word))]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });
});
