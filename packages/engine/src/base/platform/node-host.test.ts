import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../core/errors.js';
import { nodeHost } from './node-host.js';

describe('nodeHost', () => {
  it('is this process by default', async () => {
    const host = nodeHost();
    expect([host.threads, host.signal.aborted]).toEqual([availableParallelism(), false]);
    expect(await host.protect(async () => 7)).toBe(7);
    expect(() => host.notify('nobody listens')).not.toThrow();
    const { signal } = new AbortController();
    expect(nodeHost({ threads: 3, signal })).toMatchObject({ threads: 3, signal });
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
