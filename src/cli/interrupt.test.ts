import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { interruption } from './interrupt.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A process that counts how often it was ended. */
function fakeProcess() {
  const exit = vi.fn();
  const written: string[] = [];
  const process = Object.assign(new EventEmitter(), { stdout: new EventEmitter(), stderr: new EventEmitter(), exit });
  const interrupted = interruption(process as unknown as NodeJS.Process, (text) => void written.push(text));
  return { process, exit, written, ...interrupted };
}

/** Work that lasts until a test ends it. */
function longWork() {
  let end = () => {};
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { work: () => done, end };
}

describe('an interruption', () => {
  it('fires the signal, and ends the process when patience runs out, which it says', () => {
    const { process, exit, signal, written } = fakeProcess();
    process.emit('SIGINT');
    expect([signal.aborted, exit.mock.calls]).toEqual([true, []]);
    vi.advanceTimersByTime(4499);
    expect([exit.mock.calls, written]).toEqual([[], []]);
    vi.advanceTimersByTime(1);
    expect(exit).toHaveBeenCalledWith(130);
    expect(written).toEqual([expect.stringMatching(/^interrupted; .* within 4\.5 s.* npx drmas resume\n$/)]);
  });

  it.each([['SIGINT'], ['SIGTERM'], ['SIGHUP']])(
    'ends the process at once when a second one comes, also %s during a checkpoint',
    (name) => {
      const { process, exit, protect, written } = fakeProcess();
      void protect(longWork().work);
      process.emit('SIGINT');
      expect(exit).not.toHaveBeenCalled();
      process.emit(name);
      expect(exit).toHaveBeenCalledWith(130);
      expect(written).toEqual([]);
    },
  );

  it('does not cut short a checkpoint that is being written, and then waits as long again', async () => {
    const { process, exit, protect } = fakeProcess();
    const [first, second] = [longWork(), longWork()];
    process.emit('SIGTERM');
    vi.advanceTimersByTime(4000);
    const writing = [protect(first.work), protect(second.work)];
    vi.advanceTimersByTime(60_000);
    first.end();
    await writing[0];
    vi.advanceTimersByTime(60_000);
    expect(exit).not.toHaveBeenCalled();
    second.end();
    await writing[1];
    vi.advanceTimersByTime(4499);
    expect(exit).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(exit).toHaveBeenCalledWith(130);
  });

  it('keeps its patience after protected work that ends in time, with its error', async () => {
    const { process, exit, protect } = fakeProcess();
    process.emit('SIGINT');
    await expect(protect(() => Promise.reject(new Error('disk full')))).rejects.toThrow('disk full');
    vi.advanceTimersByTime(4500);
    expect(exit).toHaveBeenCalledTimes(1);
  });

  it('is a reader that goes away, once', () => {
    const { process, exit, signal } = fakeProcess();
    const gone = Object.assign(new Error('gone'), { code: 'EPIPE' });
    process.stdout.emit('error', gone);
    process.stderr.emit('error', gone);
    expect([signal.aborted, exit.mock.calls]).toEqual([true, []]);
    expect(() => process.stdout.emit('error', new Error('other'))).toThrow('other');
  });
});
