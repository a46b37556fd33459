import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createRun, temporaryRoot, tinyRecipe, trainTiny } from '../../../test/support/tiny-run.js';
import { nodeHost } from '../../base/platform/node-host.js';
import { precisionsOf } from '../../engine/contract.js';
import { executeRun } from './execute-run.js';

const root = temporaryRoot();

describe('executeRun', () => {
  it('protects every checkpoint, the one of an interruption too, from being cut short', async () => {
    const recipe = tinyRecipe({}, ['training.steps=2', 'training.checkpointEvery=1', 'evaluation.tasks=1']);
    const controller = new AbortController();
    const log = await createRun(root, recipe, {
      listeners: [{ event: ({ type }) => void (type === 'step' && controller.abort(new Error('enough'))) }],
    });
    const protectedAt: boolean[] = [];
    const host = nodeHost({
      threads: 1,
      signal: controller.signal,
      protect: (work) => {
        protectedAt.push(controller.signal.aborted);
        return work();
      },
    });
    await expect(executeRun(recipe, log, host)).rejects.toThrow('enough');
    expect(protectedAt).toEqual([true]);
    expect((await log.latestCheckpoint())?.step).toBe(1);

    const whole = await createRun(root, recipe);
    protectedAt.length = 0;
    await executeRun(recipe, whole, { ...host, signal: new AbortController().signal });
    expect(protectedAt).toHaveLength((await whole.events()).filter(({ type }) => type === 'checkpoint').length);
  });

  it('writes no checkpoint while the warm start is under way', { tags: 'verify' }, async () => {
    const recipe = tinyRecipe({}, ['warmStart.seed=91', 'warmStart.steps=60']);
    const controller = new AbortController();
    const log = await createRun(root, recipe, {
      listeners: [{ event: ({ type }) => void (type === 'warmup' && controller.abort(new Error('enough'))) }],
    });
    await expect(executeRun(recipe, log, nodeHost({ threads: 1, signal: controller.signal }))).rejects.toThrow(
      'enough',
    );
    expect(await log.latestCheckpoint()).toBeUndefined();
    expect((await log.events()).at(-1)).toMatchObject({ type: 'run.finished', reason: 'stopped', steps: 0 });
  });
});

describe('begin run', () => {
  const root = temporaryRoot();
  afterEach(() => vi.unstubAllEnvs());

  describe('the log of a run that begins', () => {
    it('has the compilation, why it failed, and the kernels that compute instead', { tags: 'verify' }, async () => {
      const CXX = join(root, 'c++');
      await writeFile(CXX, '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "no space left" >&2; exit 1\n');
      await chmod(CXX, 0o755);
      vi.stubEnv('CXX', CXX);
      vi.stubEnv('DRMAS_CACHE', join(root, 'cache'));
      const notices: string[] = [];
      const recipe = tinyRecipe({}, ['training.steps=1', 'evaluation.every=1']);
      const run = await trainTiny(root, recipe, { notify: (message) => notices.push(message) });
      const events = await run.events();
      const notice = events.find((event) => event.type === 'run.started')?.hardware.notice;
      expect(notice).toMatch(
        /^No native kernels: .* failed: no space left\. Using the WebAssembly ones, .* next start tries/,
      );
      expect(notice).not.toContain('install');
      const messages = events.flatMap((event) => (event.type === 'preparing' ? [event.message] : []));
      expect(messages).toEqual(notices.slice(0, messages.length));
      expect(messages).toContain(notice);
    });

    it('has no message if nothing had to be prepared', { tags: 'verify' }, async () => {
      const run = await trainTiny(root, tinyRecipe({}, ['training.steps=1', 'evaluation.every=1']));
      const [first] = await run.events();
      expect(first).toMatchObject({ type: 'run.started', hardware: { kernels: expect.any(String) } });
      expect(first).not.toHaveProperty('hardware.notice');
    });
  });

  it('asks for kernels in bfloat16 only if a model needs them, or no model is known', () => {
    const weights = { type: 'directory', directory: 'a' } as const;
    expect(precisionsOf([weights])).toEqual(['float32']);
    expect(precisionsOf([weights, { ...weights, precision: 'bfloat16' }])).toEqual(['float32', 'bfloat16']);
    expect(precisionsOf([])).toEqual(['float32', 'bfloat16', 'int8']);
  });
});
