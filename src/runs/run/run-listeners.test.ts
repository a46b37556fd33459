import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { defineTracker } from '@drmas/engine/host';
import { describe, expect, it } from 'vitest';
import { quickPlace } from '../../../test/support/quick-place.js';
import { temporaryRoot, tinyDefinition } from '../../../test/support/tiny-run.js';
import { ablateIn } from '../studies/ablation/ablate.js';
import { resumeIn, trainIn } from './api.js';

const root = temporaryRoot();
const eventFiles = async (run: string) => (await readdir(run)).filter((name) => name.includes('tfevents'));

describe('the sinks of a run', () => {
  it('are those of the program and of the recipe, with every event; one that throws ends nothing', async () => {
    const received: Record<'program' | 'recipe', string[]> = { program: [], recipe: [] };
    const notices: string[] = [];
    const sink = (name: 'program' | 'recipe') => ({ event: ({ type }: RunEvent) => void received[name].push(type) });
    const broken = {
      name: 'broken',
      event: () => {
        throw new Error('no');
      },
    };
    const definition = tinyDefinition({ sinks: [sink('recipe')] });
    const { events } = await trainIn(quickPlace, definition, {
      run: join(root, 'sinks'),
      sinks: [sink('program'), broken],
      onNotice: (message) => notices.push(message),
    });
    const types = events.map(({ type }) => type);
    expect(received).toEqual({ program: types, recipe: types });
    expect(notices).toEqual(['broken failed, and the run continues: no']);
  });

  it('of a recipe are checked before anything is created', async () => {
    const run = join(root, 'wrong');
    const definition = tinyDefinition({ sinks: [{} as never] });
    await expect(trainIn(quickPlace, definition, { run })).rejects.toThrow(/sinks\.0: expected an object with event/);
    expect(existsSync(run)).toBe(false);
  });
});

describe('trackers', () => {
  it('work with a run that is interrupted and goes on', async () => {
    const run = join(root, 'tracked');
    const controller = new AbortController();
    const stop = { write: ({ type }: RunEvent) => void (type === 'checkpoint' && controller.abort(new Error('stop'))) };
    const options = { run, track: ['tensorboard'] };
    const begun = trainIn(quickPlace, tinyDefinition(), { ...options, sinks: [stop], signal: controller.signal });
    await expect(begun).rejects.toThrow('stop');
    const before = await eventFiles(run);
    await resumeIn(quickPlace, run, tinyDefinition(), { track: ['tensorboard'] });
    const after = await eventFiles(run);
    expect([before.length, after.length]).toEqual([1, 1]);
    expect(after).not.toEqual(before);
  });

  it('do not see a resume that is refused, and leave the earlier files if another one refuses it', async () => {
    const run = join(root, 'refused');
    const closed: string[] = [];
    const mine = defineTracker({ name: 'mine', open: async ({ name }) => ({ close: () => void closed.push(name) }) });
    const definition = tinyDefinition({ use: [mine] });
    const track = ['tensorboard'];
    const { events } = await trainIn(quickPlace, definition, { run, track });
    const from = `${events.findLast((event) => event.type === 'checkpoint')?.step}`;
    const [before, log] = [await eventFiles(run), await readFile(join(run, 'events.jsonl'), 'utf8')];
    const withoutServer = { ...quickPlace, executeRun: () => Promise.reject(new RunError('no server answers')) };
    await expect(resumeIn(withoutServer, run, definition, { from, track })).rejects.toThrow('no server answers');
    expect([closed, await eventFiles(run)]).toEqual([['refused'], before]);
    const unreachable = [...track, 'mlflow=http://127.0.0.1:1'];
    const other = resumeIn(quickPlace, run, definition, { from, track: unreachable });
    await expect(other).rejects.toThrow(/cannot be reached/);
    expect([closed, await eventFiles(run)]).toEqual([['refused', 'refused'], before]);
    expect(await readFile(join(run, 'events.jsonl'), 'utf8')).toBe(log);
  });

  it('know how many changes of the recipe were accepted', async () => {
    const run = join(root, 'accepted');
    const changes: number[] = [];
    const tracker = defineTracker({
      name: 'mine',
      open: async (tracked) => {
        changes.push(tracked.acceptedChanges);
        return {};
      },
    });
    const { events } = await trainIn(quickPlace, tinyDefinition({ use: [tracker] }), { run });
    const step = events.findLast((event) => event.type === 'checkpoint')?.step;
    const changed = tinyDefinition({ use: [tracker], loss: { type: 'gspo' } });
    await resumeIn(quickPlace, run, changed, { from: `${step}`, acceptChanges: true });
    expect(changes).toEqual([0, 1]);
  });

  it('work with every run of an ablation', async () => {
    const run = join(root, 'ablation');
    const vary = { 'advantage.type': ['grpo', 'drmas'] };
    await ablateIn(quickPlace, tinyDefinition(), { run, vary, seeds: 1, parallel: 2, track: ['tensorboard'] });
    for (const name of ['grpo-seed-1', 'drmas-seed-1']) expect(await eventFiles(join(run, name))).toHaveLength(1);
  });

  it.each([
    ['one that there is not', 'nowhere', /track: there is no tracker 'nowhere'/],
    ['one that cannot be reached', 'mlflow=http://127.0.0.1:1', /cannot be reached/],
  ])('leave nothing behind: %s', async (_, track, message) => {
    const run = join(root, 'nothing');
    await expect(trainIn(quickPlace, tinyDefinition(), { run, track: [track] })).rejects.toThrow(message);
    expect(existsSync(run)).toBe(false);
  });
});
