/** This machine's files with a system that flushes like Windows: no directories, no read-only files. */
import type * as syncFs from 'node:fs';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { nodeFiles } from './node-files.js';

const refused = () => Object.assign(new Error('EPERM: operation not permitted, fsync'), { code: 'EPERM' });
/** Descriptors that cannot be flushed. */
const unwritable = new Set<number>();

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof fs>();
  const open: typeof fs.open = async (path, flags, mode) => {
    if (flags === 'r' && (await real.stat(path)).isDirectory()) throw refused(); // a directory cannot even be opened
    const handle = await real.open(path, flags, mode);
    if (flags === 'r') handle.sync = () => Promise.reject(refused());
    return handle;
  };
  return { ...real, open: vi.fn(open) };
});

vi.mock('node:fs', async (original) => {
  const real = await original<typeof syncFs>();
  const openSync: typeof syncFs.openSync = (path, flags, mode) => {
    const descriptor = real.openSync(path, flags, mode);
    if (flags === 'r') unwritable.add(descriptor);
    else unwritable.delete(descriptor);
    return descriptor;
  };
  const fsyncSync: typeof syncFs.fsyncSync = (descriptor) => {
    if (unwritable.has(descriptor)) throw refused();
    real.fsyncSync(descriptor);
  };
  return { ...real, default: { ...real, openSync, fsyncSync }, openSync, fsyncSync };
});

let root: string;
beforeEach(async () => {
  root = await fs.mkdtemp(join(tmpdir(), 'drmas-windows-'));
});
afterEach(() => fs.rm(root, { recursive: true }));

it('refuses the same calls as Windows', async () => {
  await fs.writeFile(join(root, 'a'), 'a');
  const file = await fs.open(join(root, 'a'), 'r');
  await expect(file.sync()).rejects.toThrow('EPERM');
  await file.close();
  await expect(fs.open(root, 'r')).rejects.toThrow('EPERM');
});

it('writes, appends, replaces and renames whole checkpoints all the same', async () => {
  const checkpoint = join(root, 'checkpoints', '.tmp-step');
  await nodeFiles.makeDirectory(join(checkpoint, 'solver'));
  await nodeFiles.write(join(checkpoint, 'solver', 'model.safetensors'), 'weights');
  await nodeFiles.write(join(checkpoint, 'cursor.json'), '{}');
  await nodeFiles.rename(checkpoint, join(root, 'checkpoints', 'step'));
  expect(await nodeFiles.readText(join(root, 'checkpoints', 'step', 'solver', 'model.safetensors'))).toBe('weights');
  nodeFiles.append(join(root, 'events.jsonl'), 'one\n', 0);
  nodeFiles.append(join(root, 'events.jsonl'), 'two\n', 4);
  await nodeFiles.replace(join(root, 'events.jsonl'), 'three\n');
  expect(await nodeFiles.readText(join(root, 'events.jsonl'))).toBe('three\n');
});

it('takes a file into a checkpoint that may only be read', async () => {
  const source = join(root, 'from');
  await nodeFiles.makeDirectory(source);
  await nodeFiles.write(join(source, 'copied'), 'x');
  const open = vi.mocked(fs.open);
  const before = open.getMockImplementation() as typeof fs.open;
  open.mockImplementation(async (path, flags, mode) => {
    if (flags === 'r+') throw Object.assign(new Error('EACCES'), { code: 'EACCES' });
    return before(path, flags, mode);
  });
  try {
    await nodeFiles.rename(source, join(root, 'to'));
  } finally {
    open.mockImplementation(before);
  }
  expect(await nodeFiles.readText(join(root, 'to', 'copied'))).toBe('x');
});
