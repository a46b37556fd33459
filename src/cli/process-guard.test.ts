import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { endProcess, guardExit, reserveStdout } from './process-guard.js';

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
});
