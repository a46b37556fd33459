import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takesTime } from '../../../../test/support/time-and-chance.js';
import { withLock } from './blob-download.js';

describe('withLock', () => {
  let directory = '';
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'drmas-lock-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const signal = new AbortController().signal;

  it('lets one at a time in, says once that it waits, and leaves nothing behind', async () => {
    const path = join(directory, 'deep', 'x.lock');
    let inside = 0;
    let most = 0;
    let waits = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      await takesTime(20);
      inside--;
    };
    const onWait = () => waits++;
    await Promise.all(Array.from({ length: 3 }, () => withLock(path, { signal, onWait, beatMs: 5 }, work)));
    expect(most).toBe(1);
    expect(waits).toBe(2);
    expect(await readdir(join(directory, 'deep'))).toEqual([]);
  });

  it('takes over what a process that died left', async () => {
    const path = join(directory, 'x.lock');
    await writeFile(path, '');
    expect(await withLock(path, { signal, onWait: () => {}, beatMs: 1 }, async () => 'done')).toBe('done');
  });

  it('is released when the work fails, and not waited for after an interruption', async () => {
    const path = join(directory, 'x.lock');
    const fail = withLock(path, { signal, onWait: () => {} }, () => Promise.reject(new Error('no')));
    await expect(fail).rejects.toThrow('no');
    await writeFile(path, '');
    const stopped = new AbortController();
    const waiting = withLock(path, { signal: stopped.signal, onWait: () => stopped.abort() }, async () => 'never');
    await expect(waiting).rejects.toThrow('aborted');
  });
});
