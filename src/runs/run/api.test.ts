import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ArgumentError, RunError, TrainingError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { HOW_TO_SUCCEED } from '@drmas/engine/nouns';
import { describe, expect, it, vi } from 'vitest';
import {
  digitTeam,
  eventsOf,
  filesOf,
  temporaryRoot,
  tinyDefinition,
  trainTiny,
} from '../../../test/support/tiny-run.js';
import { RunDirectory } from '../../method/store/run-directory.js';
import { jsonl } from '../../teams/tasks/files/file-source.js';
import { resolveRecipe } from '../composition/resolve-recipe.js';
import { evaluate, type RunStart, resume, train } from './api.js';
import { requestEvaluation } from './request/evaluation.js';

const root = temporaryRoot();
const definition = tinyDefinition();
const enough = new Error('enough');

/** Begins a run and interrupts it after its second step. */
async function interrupted(name: string): Promise<string> {
  const run = join(root, name);
  const controller = new AbortController();
  const write = (event: RunEvent) => event.type === 'step' && event.step === 2 && controller.abort(enough);
  await expect(
    train(definition, { run, threads: 1, sinks: [{ write }], signal: controller.signal, seed: 3 }),
  ).rejects.toBe(enough);
  return run;
}

describe('the evaluation of a team that does not say what success is', () => {
  it('tells why no episode succeeds if rewards stay below 1', async () => {
    const noticesOf = async (reward: number, success?: () => number) => {
      const notices: string[] = [];
      const team = { ...digitTeam, reward: () => reward, ...(success && { success }) };
      const options = { tasks: 2, samples: 1, threads: 1, onNotice: (message: string) => notices.push(message) };
      await evaluate(tinyDefinition({ team: team as unknown as typeof digitTeam }), options);
      return notices.filter((notice) => notice === HOW_TO_SUCCEED).length;
    };
    expect(await noticesOf(0.4)).toBe(1);
    expect(await noticesOf(0)).toBe(0);
    expect(await noticesOf(1)).toBe(0);
    expect(await noticesOf(0.4, () => 0)).toBe(0);
  });
});

describe('a run that would go on with other kernels', () => {
  it('keeps what comes after the checkpoint that was named', { tags: 'verify' }, async () => {
    const path = join(root, 'other-kernels');
    await train(definition, { run: path, threads: 1 });
    const before = await RunDirectory.open(path);
    const [events, files, checkpoints] = [await eventsOf(before), await filesOf(before), await before.checkpoints()];
    expect(checkpoints.length).toBeGreaterThan(1);
    vi.stubEnv('DRMAS_KERNELS', 'reference');
    try {
      await expect(resume(path, definition, { from: '7' })).rejects.toThrow(/has no checkpoint '7'/);
      await expect(resume(path, definition, { from: `${checkpoints[0]?.step}`, threads: 1 })).rejects.toThrow(
        /was started with .* kernels, this machine has reference .*--accept-changes/,
      );
    } finally {
      vi.unstubAllEnvs();
    }
    const after = await RunDirectory.open(path);
    expect([await eventsOf(after), await filesOf(after)]).toEqual([events, files]);
  });
});

describe('a run whose resume fails before it begins', () => {
  it('keeps its log, its later checkpoints and its record as they were', { tags: 'verify' }, async () => {
    const path = join(root, 'unanswered');
    await train(definition, { run: path, threads: 1 });
    const files = () =>
      readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name !== 'lock')
        .map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), 'hex')]);
    const before = files();
    const changed = tinyDefinition({ loss: { type: 'gspo' } });
    vi.stubEnv('DRMAS_KERNELS', 'missing');
    try {
      await expect(resume(path, changed, { threads: 1, acceptChanges: true, from: '2' })).rejects.toThrow(
        /^DRMAS_KERNELS is missing/,
      );
    } finally {
      vi.unstubAllEnvs();
    }
    expect(files()).toEqual(before);
    const { events } = await resume(path, definition, { threads: 1, from: '2' });
    expect(events.at(-1)).toMatchObject({ reason: 'completed' });
    expect((await RunDirectory.open(path)).record.acceptedChanges).toEqual([]);
  });
});

describe('a run that was begun by a program', () => {
  it('goes on with its definition as if it had never stopped', async () => {
    const path = await interrupted('program');
    const seen: string[] = [];
    const { run, events } = await resume(path, definition, {
      threads: 1,
      sinks: [{ write: ({ type }) => seen.push(type) }],
    });
    expect(run).toBe(path);
    expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    expect(seen.at(-1)).toBe('run.finished');
    const whole = await trainTiny(root, resolveRecipe(definition, { overrides: ['seed=3'] }));
    const [again, expected] = [await RunDirectory.open(path), whole];
    expect(await eventsOf(again)).toEqual(await eventsOf(expected));
    expect(await filesOf(again)).toMatchObject(await filesOf(expected));
    await expect(resume(path, definition)).rejects.toThrow(/is complete: there is nothing to resume/);
    const { averageAtK } = await evaluate(path, { recipe: definition, tasks: 2, samples: 1, threads: 1 });
    expect(averageAtK).toBeGreaterThanOrEqual(0);
    const by = { recipe: definition, by: ['operations'], tasks: 4, samples: 1, threads: 1 };
    expect(Object.keys((await evaluate(path, by)).slices?.operations ?? {})).toContain('1');
    const recipe = tinyDefinition({ assign: { solver: 'solvers', verifier: 'verifier' } });
    await expect(evaluate(path, { recipe })).rejects.toThrow(
      /has not trained the policy 'solvers'; did you mean 'solver'/,
    );
  });

  it('tells the request before its first event, and what the run has already when it goes on', {
    tags: 'verify',
  }, async () => {
    const run = join(root, 'told');
    const order: unknown[] = [];
    const controller = new AbortController();
    const options = {
      threads: 1,
      onStart: ({ recipe, events, ...start }: RunStart) =>
        order.push({ ...start, name: recipe.name, events: events.length }),
      sinks: [{ write: ({ type }: RunEvent) => order.push(type) }],
    };
    const stop = { write: ({ type }: RunEvent) => type === 'step' && controller.abort(enough) };
    const set = ['training.steps=2'];
    const first = train(definition, {
      ...options,
      run,
      set,
      sinks: [...options.sinks, stop],
      signal: controller.signal,
    });
    await expect(first).rejects.toBe(enough);
    const start = { source: 'a program', overrides: set, run, name: 'tiny' };
    expect(order.slice(0, 2)).toEqual([{ ...start, events: 0 }, 'run.started']);
    order.length = 0;
    await resume(run, definition, options);
    expect(order[0]).toEqual({ ...start, events: expect.any(Number) });
    expect((order[0] as { events: number }).events).toBeGreaterThan(2);
  });

  it('says what is missing without it, and what has changed', { tags: 'verify' }, async () => {
    const path = await interrupted('changed');
    const missing = /was started by a program.*resume\(run, definition\).*with \{ recipe: definition \}/;
    const requests = [resume, evaluate, (run: string) => requestEvaluation(run, {}, async () => {})];
    for (const request of requests) {
      const error = await request(path).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(RunError);
      expect(error).toMatchObject({ exitCode: 2, message: expect.stringMatching(missing) });
    }
    const other = tinyDefinition({ loss: { type: 'gspo' } });
    await expect(resume(path, other)).rejects.toThrow(/resolves to other settings.*acceptChanges/);
    const { events } = await resume(path, other, { threads: 1, acceptChanges: true });
    expect(events.at(-1)).toMatchObject({ reason: 'completed' });
    expect((await RunDirectory.open(path)).record.acceptedChanges).toMatchObject([{ step: 2 }]);
  });

  it('refuses a file of tasks that has changed, since other tasks may be held out', { tags: 'verify' }, async () => {
    const [file, run] = [join(root, 'tasks.jsonl'), join(root, 'other-tasks')];
    const row = (n: number) => `${JSON.stringify({ question: `${n}+1`, answer: `${n + 1}` })}\n`;
    writeFileSync(file, [1, 2, 3, 4, 5, 6].map(row).join(''));
    const recipe = tinyDefinition({ tasks: jsonl(file, { test: 0.4 }) });
    await train(recipe, { run, threads: 1 });
    const from = 'step-000002';
    appendFileSync(file, row(7));
    await expect(resume(run, recipe, { from, threads: 1 })).rejects.toThrow(
      /the file of tasks .*tasks\.jsonl has changed/,
    );
    const { events } = await resume(run, recipe, { from, threads: 1, acceptChanges: true });
    expect(events.at(-1)).toMatchObject({ reason: 'completed' });
  });
});

describe('a request', () => {
  const { tasks } = definition.input;
  if (!('load' in tasks)) throw new Error('expected one source');

  it('reads each split once', async () => {
    const read: string[] = [];
    const load: typeof tasks.load = (split, schema) => {
      read.push(split);
      return tasks.load(split, schema);
    };
    await train(tinyDefinition({ tasks: { ...tasks, load } }), { run: join(root, 'once'), set: ['training.steps=0'] });
    expect(read.sort()).toEqual(['test', 'train']);
  });

  it('that was right fails with exit code 1 once work has begun', async () => {
    const load: typeof tasks.load = async (split) => {
      const set = await tasks.load(split);
      const at: typeof set.at = (index) => {
        if (index > 0) throw new ArgumentError('a wrong length'); // the first task is tried before any work
        return set.at(index);
      };
      return { ...set, at };
    };
    const run = join(root, 'failed');
    const error = await train(tinyDefinition({ tasks: { ...tasks, load } }), { run, threads: 1 }).catch((e) => e);
    expect(error).toBeInstanceOf(TrainingError);
    expect(error).toMatchObject({ exitCode: 1, message: 'ArgumentError: a wrong length' });
    expect(error.cause).toBeInstanceOf(ArgumentError);
    expect((await (await RunDirectory.open(run)).events()).at(-1)).toMatchObject({ reason: 'failed' });
  });

  it('keeps its checkpoints where somebody deletes the event log meanwhile', async () => {
    const run = join(root, 'deleted');
    const write = ({ type }: RunEvent) => type === 'checkpoint' && rmSync(join(run, 'events.jsonl'));
    await expect(train(definition, { run, threads: 1, sinks: [{ write }] })).rejects.toThrow(/events\.jsonl/);
    expect(readdirSync(join(run, 'checkpoints'))).not.toEqual([]);
  });

  it("refuses a program's own tasks that have changed", { tags: 'verify' }, async () => {
    const row = (n: number) => ({ question: `${n}+1`, answer: `${n + 1}` });
    const list = [1, 2, 3, 4, 5, 6].map(row);
    const source = (rows: readonly object[]) => {
      const at = (i: number) => ({ id: `${i}`, data: rows[i % rows.length] });
      return {
        name: 'own',
        load: async (split: string) => ({ name: 'own', size: split === 'train' ? Number.POSITIVE_INFINITY : 4, at }),
      };
    };
    const cases = [
      ['listed', (rows: readonly object[]) => rows, /the set of tasks tasks \(train\) has changed/],
      ['sourced', source, /the set of tasks own \(train\) has changed/],
    ] as const;
    for (const [name, tasksOf, message] of cases) {
      const run = join(root, name);
      const recipe = (rows: readonly object[]) => tinyDefinition({ tasks: tasksOf(rows) } as never);
      await train(recipe(list), { run, threads: 1 });
      const again = (rows: readonly object[]) => resume(run, recipe(rows), { from: 'step-000002', threads: 1 });
      for (const changed of [[...list, row(7)], list.slice(1), [...list.slice(0, 5), row(9)]])
        await expect(again(changed)).rejects.toThrow(message);
      expect((await again([...list])).events.at(-1)).toMatchObject({ reason: 'completed' });
    }
  });
});
