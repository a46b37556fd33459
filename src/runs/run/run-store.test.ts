// @module-tag verify
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { withEnvironment } from '../../../test/support/environment.js';
import { S3_REGION, type S3Fake, s3Fake } from '../../../test/support/s3-fake.js';
import { temporaryRoot, tinyDefinition } from '../../../test/support/tiny-run.js';
import { resume, train } from './api.js';
import { fetchRun } from './run-store.js';

const root = temporaryRoot();
let s3: S3Fake;
let restore: () => void;
beforeAll(async () => {
  s3 = await s3Fake(['mine']);
  restore = withEnvironment({
    AWS_ACCESS_KEY_ID: 'AKIDALL',
    AWS_SECRET_ACCESS_KEY: 'secret',
    AWS_REGION: S3_REGION,
    AWS_ENDPOINT_URL: s3.url,
  });
});
afterEach(() => {
  s3.fault = () => undefined;
});
afterAll(async () => {
  restore();
  await s3.close();
});

const recipe = tinyDefinition();
const denied = { status: 403, code: 'AccessDenied' };

/** Does something as soon as a run tells an event. */
const when = (type: RunEvent['type'], step: number, act: () => void) => ({
  write: (event: RunEvent) => void (event.type === type && 'step' in event && event.step === step && act()),
});

describe('a run with a copy in a store', () => {
  it('goes on where a checkpoint cannot be copied, and copies it with the next', async () => {
    const notices: string[] = [];
    const refuse = when('step', 1, () => {
      s3.fault = ({ method }) => (method === 'PUT' ? denied : undefined);
    });
    const again = when('step', 3, () => {
      s3.fault = () => undefined;
    });
    const run = join(root, 'first');
    const { events } = await train(recipe, {
      run,
      store: 's3://mine/a',
      threads: 1,
      sinks: [refuse, again],
      onNotice: (message) => notices.push(message),
    });
    expect(
      notices.filter((notice) => /cannot copy a checkpoint of .*first; drmas tries again at the next one/.test(notice)),
    ).toEqual([expect.stringContaining('AccessDenied')]);
    const copy = join(root, 'copy', 'first');
    expect(await fetchRun('s3://mine/a', copy)).toBe(true);
    expect(await readFile(join(copy, 'events.jsonl'), 'utf8')).toBe(await readFile(join(run, 'events.jsonl'), 'utf8'));
    expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    expect(await readFile(join(copy, 'checkpoints/step-000004/solver/model.safetensors'))).toEqual(
      await readFile(join(run, 'checkpoints/step-000004/solver/model.safetensors')),
    );
  });

  it('has failed where its end cannot be copied, and all of it is here', async () => {
    const run = join(root, 'last');
    const refuse = when('checkpoint', 4, () => {
      s3.fault = ({ method }) => (method === 'PUT' ? denied : undefined);
    });
    await expect(train(recipe, { run, store: 's3://mine/b', threads: 1, sinks: [refuse] })).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(/cannot copy the end of .*last to s3:\/\/mine\/b: .*AccessDenied/),
    });
    expect(await readFile(join(run, 'events.jsonl'), 'utf8')).toContain('"completed"');
  });

  it('is resumed from its copy in a folder after an interruption', async () => {
    const controller = new AbortController();
    const stop = when('checkpoint', 2, () => controller.abort(new Error('enough')));
    const store = join(root, 'folder');
    const run = join(root, 'here', 'mine');
    const begun = train(recipe, { run, store, threads: 1, sinks: [stop], signal: controller.signal });
    await expect(begun).rejects.toThrow('enough');
    await expect(train(recipe, { run: join(root, 'other', 'mine'), store, threads: 1 })).rejects.toThrow(
      /already has a copy of a run with the name of .*mine; resume it with --resume/,
    );
    const there = join(root, 'there', 'mine');
    expect(await fetchRun(store, there)).toBe(true);
    const { events } = await resume(there, recipe, { store, threads: 1 });
    expect(events.flatMap((event) => (event.type === 'step' ? [event.step] : []))).toEqual([1, 2, 3, 4]);
    expect(await fetchRun(store, join(root, 'none', 'nobodys'))).toBe(false);
  });

  it('is left alone by a resume that is refused, and by another run of its name', async () => {
    const [store, first, other] = [join(root, 'store'), join(root, 'a', 'same'), join(root, 'b', 'same')];
    await train(recipe, { run: first, store, threads: 1, set: ['training.steps=2'] });
    const copies = async () => (await readdir(store, { recursive: true })).sort();
    const before = await copies();
    await expect(resume(first, recipe, { store, threads: 1 })).rejects.toThrow('is complete');
    expect(await copies()).toEqual(before);
    await train(recipe, { run: other, threads: 1, seed: 2 });
    await expect(resume(other, recipe, { store, threads: 1 })).rejects.toThrow(/has a copy of another run/);
    expect(await copies()).toEqual(before);
  });
});
