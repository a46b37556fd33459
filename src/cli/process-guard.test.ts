import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { endProcess, guardExit, interruption, reserveStdout } from './process-guard.js';

describe('the end of a process', () => {
  const exitWith = (code: number, { ended = false } = {}) => {
    const process = Object.assign(new EventEmitter(), { exitCode: code });
    let shown = '';
    const end = guardExit(process as unknown as NodeJS.Process, (text) => {
      shown += text;
    });
    if (ended) end();
    process.emit('exit', code);
    return { exitCode: process.exitCode, shown };
  };

  it('by a team is no success, and says where', () => {
    const { exitCode, shown } = exitWith(0);
    expect(exitCode).toBe(1);
    expect(shown).toMatch(
      /^error: the code of the recipe ended the process before the command was done, with exit code 0\n.*process-guard\.test\.ts/,
    );
  });

  it('by an error that nothing catches is left to Node', async () => {
    const process = Object.assign(new EventEmitter(), { exitCode: 1 });
    const write = vi.fn();
    guardExit(process as unknown as NodeJS.Process, write);
    process.emit('uncaughtExceptionMonitor', new Error('no thread'));
    setImmediate(process.emit.bind(process, 'exit', 1)); // as Node does: without a frame of other code
    await new Promise(setImmediate);
    expect(write).not.toHaveBeenCalled();
    process.emit('exit', 1);
    expect(write).toHaveBeenCalledOnce();
  });

  it('by the command or by an interruption stays as it is', () => {
    expect(exitWith(0, { ended: true })).toEqual({ exitCode: 0, shown: '' });
    expect(exitWith(130)).toEqual({ exitCode: 130, shown: '' });
  });
});

it('stdout is the command’s alone where a program reads it', () => {
  const written: string[] = [];
  const stream = (name: string) => ({ write: (text: string) => written.push(`${name}: ${text}`) });
  const process = { stdout: stream('out'), stderr: stream('err') } as unknown as NodeJS.Process;
  const stdout = reserveStdout(process);
  process.stdout.write('from a team');
  stdout.write('{}');
  expect(written).toEqual(['err: from a team', 'out: {}']);
});

it('the process ends when all is written, with the exit code of the command', async () => {
  let deliver = () => {};
  const delivered = new Promise<void>((resolve) => {
    deliver = resolve;
  });
  const slow = new Writable({ write: (_chunk, _encoding, done) => void delivered.then(() => done()) });
  const quick = new Writable({ write: (_chunk, _encoding, done) => done() });
  const exit = vi.fn();
  slow.write('the last line');
  const over = endProcess({ stdout: slow, stderr: quick, exit } as unknown as NodeJS.Process, 3);
  await new Promise(setImmediate);
  expect(exit).not.toHaveBeenCalled();
  deliver();
  await over;
  expect(exit.mock.calls).toEqual([[3]]);
  // The losses are known when all was tried.
  const full = new Writable({ write: (_chunk, _encoding, done) => setImmediate(done, new Error('full')) });
  let lost = false;
  full.on('error', () => {
    lost = true;
  });
  full.write('a line');
  for (const code of [0, 2])
    await endProcess({ stdout: full, stderr: quick, exit } as unknown as NodeJS.Process, code, () => lost);
  expect(exit.mock.calls).toEqual([[3], [1], [2]]);
});

describe('an interruption', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A process that counts how often it was ended. */
  function fakeProcess(env: NodeJS.ProcessEnv = {}) {
    const exit = vi.fn();
    const written: string[] = [];
    const streams = { stdout: new EventEmitter(), stderr: new EventEmitter() };
    const process = Object.assign(new EventEmitter(), { ...streams, exit, env, ppid: 7 });
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
      expect(written).toEqual([expect.stringMatching(/^interrupted; .* within 4\.5 s.* npx drmas resume <run>\n$/)]);
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
    });

    it('is no terminal that is gone, and no disk that is full, of which the user hears once', () => {
      const { process, signal, written, lostOutput } = fakeProcess();
      const error = (code: string) => Object.assign(new Error(`${code}: it`), { code });
      Object.assign(process.stdout, { isTTY: true });
      process.stdout.emit('error', error('EIO'));
      expect([signal.aborted, written, lostOutput()]).toEqual([false, [], false]);
      for (const stream of [process.stderr, process.stdout]) stream.emit('error', error('ENOSPC'));
      expect(signal.aborted).toBe(false);
      expect([written, lostOutput()]).toEqual([['error: the output cannot be written: ENOSPC: it\n'], true]);
    });

    it.each([
      ['npx', true],
      [undefined, false],
    ])('is the end of the shell in which npm started the process: %s', (npm_lifecycle_event, isNpm) => {
      const { process, signal } = fakeProcess({ npm_lifecycle_event });
      vi.advanceTimersByTime(5000);
      expect(signal.aborted).toBe(false);
      process.ppid = 1;
      vi.advanceTimersByTime(1000);
      expect(signal.aborted).toBe(isNpm);
    });
  });
});
