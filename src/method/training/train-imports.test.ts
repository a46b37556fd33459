// @module-tag verify
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { filesOf } from '../../../scripts/house/file-rules.js';
import { importsOf, reachedByValue } from '../../../scripts/house/imports.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const imports = importsOf(root, filesOf(root));

/** The files and modules that a file below `src` reaches by imports of values. */
const reachedFrom = (start: string) => [...reachedByValue(imports, `src/${start}`)];

describe('the training loop', () => {
  const reached = reachedFrom('method/training/train.ts');
  const inRoom = (room: string) =>
    reached.filter((path) => path === `src/${room}` || path.startsWith(`src/${room}/`) || path === `src/${room}.ts`);

  it('reaches the method', () => {
    for (const part of ['step/play-step.ts', 'step/learn-step.ts', 'update/update-policy.ts', 'signals/branches.ts'])
      expect(reached).toContain(`src/method/training/${part}`);
    expect(inRoom('method/advantage')).not.toEqual([]);
  });

  it.each([
    'base/platform/node-files.ts',
    'base/files',
    'engine/backends',
    'engine/embedded',
    'engine/endpoint',
    'engine/hub',
    'engine/model/decoder',
    'engine/model/formats',
    'engine/samplers',
    'engine/tensor',
    'tinker',
    'lab',
    'cluster',
    'method/store',
    'runs',
    'gateway',
  ])('reaches no file of %s', (room) => {
    expect(inRoom(room)).toEqual([]);
  });

  it('needs nothing of Node', () => {
    expect(reached.filter((path) => path.startsWith('node:'))).toEqual([]);
  });

  it('reads as the sentences of the method: at most 60 lines', () => {
    const lines = readFileSync(resolve(root, 'src/method/training/train.ts'), 'utf8').trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(60);
  });
});

it('imports of values are distinguished from imports of types', () => {
  const reached = reachedFrom('runs/run/execute/execute-run.ts');
  expect(reached.filter((path) => path.startsWith('src/')).length).toBeGreaterThan(200);
  expect(reached.some((path) => path.startsWith('node:'))).toBe(true);
  expect(reached.some((path) => path.startsWith('packages/engine/src/backends/'))).toBe(true);
});
