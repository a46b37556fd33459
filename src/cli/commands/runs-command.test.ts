import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventBody, RunFinished } from '@drmas/engine/events';
import { systemClock } from '@drmas/engine/host';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { evaluation, finished, started, step } from '../../../test/fixtures/run-events.js';
import { drmas, foldedText, functions, keyboardOf, unspaced } from '../../../test/support/command-line.js';
import { RunDirectory } from '../../method/store/run-directory.js';
import { runCommandLine } from '../command-line.js';

let folder: string;

/** A run of the folder that began on this day of January. */
async function recordRun(name: string, day: number, seed: number, events: readonly EventBody[]) {
  const record = {
    version: 1 as const,
    recipe: { source: 'math', overrides: [], codeHash: 'abc' },
    resolved: { name: 'math', seed, advantage: { type: 'drmas' }, training: { steps: 3 } },
    acceptedChanges: [],
  };
  const clock = { ...systemClock, now: () => new Date(2026, 0, day, 9, 45) };
  const run = await RunDirectory.create(join(folder, name), record, { clock });
  for (const event of events) run.emit(event);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drmas-runs-'));
  await recordRun('first', 1, 1, [
    started,
    evaluation(0, 0.5),
    step(1),
    step(2),
    step(3),
    evaluation(3, 0.9),
    finished,
  ]);
  await recordRun('cut-short', 3, 2, [started, evaluation(0, 0.5), step(1)]);
  await rm(join(folder, 'cut-short', 'lock')); // the lock names this process, which lives
  await recordRun('crashed', 2, 3, [started, ended('failed')]);
  await recordRun('fresh', 9, 4, []);
  await recordRun('damaged', 8, 5, [started, step(1)]);
  await writeFile(join(folder, 'damaged', 'events.jsonl'), 'no event\n{"type":"step"}\n');
  await recordRun('pairs/drmas-1', 4, 1, [started, evaluation(0, 0.2), ended('stopped')]);
  await writeFile(join(folder, 'pairs', 'ablation.json'), '{}');
  await mkdir(join(folder, 'notes'));
  await mkdir(join(folder, '.cache'));
  await writeFile(join(folder, 'report.html'), '');
});
afterAll(() => rm(folder, { recursive: true }));

const ended = (reason: RunFinished['reason']): RunFinished => ({ type: 'run.finished', reason, steps: 0, seconds: 1 });

/** The command's lines in a terminal of so many columns, or in a pipe. */
async function lines(columns?: number, environment: NodeJS.ProcessEnv = {}) {
  let out = '';
  const stdout = { isTTY: columns !== undefined, columns, write: (text: string) => (out += text) };
  const signal = new AbortController().signal;
  const stdin = () => keyboardOf('');
  const streams = { stdin, stdout, stderr: stdout, environment };
  const context = { ...streams, signal, protect: <T>(act: () => T) => act(), ...functions };
  expect(await runCommandLine(context, ['runs', folder])).toBe(0);
  return out.replaceAll(foldedText(folder), 'runs').trimEnd().split('\n');
}

describe('drmas runs', () => {
  it('lists runs, newest first, and names the runs that it cannot read', async () => {
    const text = unspaced((await lines()).join(' ')).replaceAll(unspaced(folder), 'runs');
    const [readable] = text.split('runs/damaged');
    expect(readable).toBe(
      unspaced(
        [
          'runs/pairs/drmas-1 stopped, 0/3 steps',
          '20.0 % [17.0, 23.0]; math, drmas, seed 1, 2026-01-04 09:45',
          'runs/cut-short interrupted, 1/3 steps',
          '50.0 % [47.0, 53.0]; math, drmas, seed 2, 2026-01-03 09:45',
          'runs/crashed failed, 0/3 steps',
          'no score yet; math, drmas, seed 3, 2026-01-02 09:45',
          'runs/first completed, 3/3 steps',
          '50.0 % -> 90.0 % [87.0, 93.0]; math, drmas, seed 1, 2026-01-01 09:45',
        ].join(' '),
      ),
    );
    for (const said of [
      'runs/damaged unreadable runs/damaged/events.jsonl:1: expected an event',
      'runs/fresh running, 0/3 steps no score yet; math, drmas, seed 4 runs/notes unreadable',
      'runs/notes is not a run: it has no recipe.json',
    ])
      expect(text).toContain(unspaced(said));
  });

  it('prints them as JSON', async () => {
    const { code, out } = await drmas(['runs', folder, '--json']);
    const { type, runs } = JSON.parse(out);
    expect([code, type, runs.length]).toEqual([0, 'runs', 7]);
    expect(runs[3]).toEqual({
      path: join(folder, 'first'),
      recipe: 'math',
      started: new Date(2026, 0, 1, 9, 45).toISOString(),
      state: 'completed',
      steps: 3,
      plannedSteps: 3,
      first: { step: 0, averageAtK: 0.5, low: 0.47, high: 0.53, reward: null },
      last: { step: 3, averageAtK: 0.9, low: 0.87, high: expect.closeTo(0.93), reward: null },
      headline: 'score',
      estimator: 'drmas',
      seed: 1,
    });
    expect(runs[4]).toEqual({ path: join(folder, 'damaged'), state: 'unreadable', problem: expect.any(String) });
  });

  it('stays within a narrow terminal, and colours only where colours are wanted', async () => {
    const escapeCode = String.fromCharCode(27);
    const narrow = await lines(50, { NO_COLOR: '1' });
    expect(Math.max(...narrow.filter((line) => !line.includes(tmpdir())).map((line) => line.length))).toBeLessThan(50);
    // A folder with a space is folded too.
    expect(unspaced(narrow.join(' ')).replaceAll(unspaced(folder), 'runs')).toContain(
      unspaced('runs/first completed, 3/3 steps 50.0 % -> 90.0 % [87.0, 93.0]; math, drmas, seed 1, 2026-01-01 09:45'),
    );
    expect(narrow.join('')).not.toContain(escapeCode);
    expect((await lines(100)).join('')).toContain(`${escapeCode}[32mcompleted${escapeCode}[39m, 3/3 steps`);
    expect((await lines()).join('')).not.toContain(escapeCode);
  });

  it('takes a run itself, and a folder without runs', async () => {
    expect(unspaced((await drmas(['runs', join(folder, 'first')])).out)).toContain('firstcompleted');
    const empty = join(folder, '.cache');
    expect(await drmas(['runs', empty])).toMatchObject({ code: 0, out: `no runs in ${empty}\n` });
  });

  it('refuses a folder that is not there', async () => {
    const { code, err } = await drmas(['runs', join(folder, 'none')]);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/there is no folder .*none \(known: /) });
  });
});
