import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { temporaryRoot, tinyRecipe, trainTiny } from '../../../test/support/tiny-run.js';
import { precisionsOf } from '../../engine/contract.js';

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

  it('has no message if nothing had to be prepared', async () => {
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
  expect(precisionsOf([])).toEqual(['float32', 'bfloat16']);
});
