import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { compileProgress, waitingProgress } from './build-progress.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('has a line at once, and then one every fifteen seconds until the end', () => {
  const lines: string[] = [];
  const progress = compileProgress('avx512', 3, (line) => lines.push(line));
  expect(lines).toEqual([expect.stringContaining('compiling the kernels for this processor (avx512): 3 files, once')]);
  vi.advanceTimersByTime(15_000);
  progress.done();
  vi.advanceTimersByTime(15_000);
  progress.end();
  vi.advanceTimersByTime(60_000);
  expect(lines.slice(1)).toEqual([
    'compiling the kernels: 0 of 3 files after 15 s',
    'compiling the kernels: 1 of 3 files after 30 s',
  ]);
});

it('says whom it waits for', () => {
  const lines: string[] = [];
  const end = waitingProgress('process 0', (line) => lines.push(line));
  vi.advanceTimersByTime(31_000);
  end();
  vi.advanceTimersByTime(31_000);
  expect(lines).toEqual([
    'another process (process 0) compiles the kernels; waiting for it',
    'another process (process 0) compiles the kernels; waiting for 15 s',
    'another process (process 0) compiles the kernels; waiting for 30 s',
  ]);
});

it('does not wait aloud for a thread of this process, which reports itself', () => {
  const lines: string[] = [];
  const end = waitingProgress(`process ${process.pid}`, (line) => lines.push(line));
  vi.advanceTimersByTime(31_000);
  end();
  expect(lines).toEqual([]);
});
