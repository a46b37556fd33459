import { syncBuiltinESMExports } from 'node:module';
import os, { availableParallelism } from 'node:os';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ArgumentError } from '../core/errors.js';
import { kernelThreads, nodeHost } from './node-host.js';

/** Gives this machine another number of cores, until the test's end. */
function withCores(cores: number): void {
  vi.spyOn(os, 'availableParallelism').mockReturnValue(cores);
  syncBuiltinESMExports();
}

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

describe('nodeHost', () => {
  it('is this process by default', async () => {
    const host = nodeHost();
    expect([host.threads, host.signal.aborted]).toEqual([availableParallelism(), false]);
    expect(await host.protect(async () => 7)).toBe(7);
    expect(() => host.notify('nobody listens')).not.toThrow();
    const { signal } = new AbortController();
    expect(nodeHost({ threads: 3, signal })).toMatchObject({ threads: 3, signal });
  });

  it('has at most 256 threads on a machine with more cores, and one on a machine with one', () => {
    withCores(384);
    expect([nodeHost().threads, kernelThreads(), kernelThreads(undefined, 1)]).toEqual([256, 256, 256]);
    withCores(1);
    expect([kernelThreads(), kernelThreads(undefined, 1)]).toEqual([1, 1]);
  });

  it('turns warnings into notices if no listener takes them', () => {
    const notices: string[] = [];
    nodeHost({ notify: (message) => notices.push(message) }).warn('code', 'went wrong');
    expect(notices).toEqual(['went wrong']);
  });

  it.each([[0], [-1], [1.5], [Number.NaN], [2000]])('refuses %d threads', (threads) => {
    expect(() => nodeHost({ threads })).toThrow(ArgumentError);
  });
});
