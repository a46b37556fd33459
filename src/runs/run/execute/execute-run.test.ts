import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { precisionsOf } from '@drmas/engine/contract';
import { startEngine } from '@drmas/engine/node';
import { nodeHost } from '@drmas/engine/platform';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createRun, temporaryRoot, tinyRecipe, trainTiny } from '../../../../test/support/tiny-run.js';
import type { OpenBackend } from '../open/open-backends.js';
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
    expect((await whole.events()).find(({ type }) => type === 'run.started')).toMatchObject({ evaluated: 1 });
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

describe('an interruption while the engine does not answer', () => {
  const OWN_SEED = 'warmStart.seed=97'; // finds no warm start in the cache

  /** A backend of this package that no longer answers from the n-th call of one of its functions on. */
  function silentFrom(name: 'open' | 'logprobs' | 'forwardBackward', nth: number) {
    let called = 0;
    let fallSilent = () => {};
    const silent = new Promise<void>((resolve) => {
      fallSilent = resolve;
    });
    const disposed = vi.fn();
    const quiet = <T extends object>(target: T, inner: (value: unknown) => unknown): T =>
      new Proxy(target, {
        get(of, key) {
          const value = Reflect.get(of, key) as unknown;
          if (typeof value !== 'function') return value;
          return (...args: unknown[]) => {
            if (key === 'dispose') disposed();
            if (key !== name || ++called < nth) return inner(Reflect.apply(value, of, args));
            fallSilent();
            return new Promise(() => {});
          };
        },
      });
    const openBackend: OpenBackend = async (_spec, { host: { files, threads } }) =>
      quiet(await startEngine({ files, threads }), async (opened) => {
        const handle = await opened;
        return typeof handle === 'object' && handle !== null ? quiet(handle, (value) => value) : handle;
      });
    return { openBackend, silent, disposed };
  }

  it.each([
    ['opening a model', 'open', 1],
    ['looking for a warm start in the cache', 'logprobs', 1],
    ['the first step of the warm start', 'forwardBackward', 2],
  ] as const)('ends the run at once: %s', async (_when, name, nth) => {
    const { openBackend, silent, disposed } = silentFrom(name, nth);
    const controller = new AbortController();
    const log = await createRun(root, tinyRecipe({}, [OWN_SEED]));
    const host = nodeHost({ threads: 1, signal: controller.signal });
    const ended = executeRun(tinyRecipe({}, [OWN_SEED]), log, host, { openBackend });
    await silent;
    controller.abort(new Error('enough'));
    await expect(ended).rejects.toThrow('enough');
    expect(disposed).toHaveBeenCalled();
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
