import { afterEach, describe, expect, it } from 'vitest';
import { eventually, onFakeClock } from '../../../../test/support/time-and-chance.js';
import { TorchProcess } from './torch-process.js';

/** A worker that runs a program in JavaScript in Python's place. */
const worker = (program: string, silentMs?: number) =>
  new TorchProcess({ python: process.execPath, program: ['-e', program], options: [], ...(silentMs && { silentMs }) });

/** Puts a frame together in the worker. */
const FRAME = `
  const frame = (header) => {
    const text = Buffer.from(JSON.stringify({ arrays: [], ...header }));
    const head = Buffer.alloc(16);
    head.write('drms');
    head.writeUInt32LE(text.length, 4);
    return Buffer.concat([head, text]);
  };`;

/** Calls `take(header, arrays)` in the worker for each frame that comes. */
const READER = `${FRAME}
  let rest = Buffer.alloc(0);
  process.stdin.on('data', (chunk) => {
    for (rest = Buffer.concat([rest, chunk]); rest.length >= 16; ) {
      const header = rest.readUInt32LE(4);
      const size = 16 + header + Number(rest.readBigUInt64LE(8));
      if (rest.length < size) return;
      const text = rest.subarray(16, 16 + header).toString();
      rest = rest.subarray(size);
      take(JSON.parse(text));
    }
  });
  const write = (header) => process.stdout.write(frame(header));`;

/** Asks for slopes twice in a call, and ends the call when the loss has failed. */
const ASKING = `${READER}
  let id, asked;
  const ask = () => { asked++; write({ type: 'scores', asked }); };
  const take = ({ type, failed, ...header }) => {
    if (type === 'call') { id = header.id; asked = 0; ask(); }
    else if (type !== 'slopes') return;
    else if (failed) write({ type: 'answer', id, error: { name: 'BackendError', message: 'the loss failed' } });
    else if (asked < 2) ask();
    else write({ type: 'answer', id, value: { asked } });
  };`;

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('the process of the engine on PyTorch', () => {
  const started: TorchProcess[] = [];
  const start = (...args: Parameters<typeof worker>) => {
    const one = worker(...args);
    started.push(one);
    return one;
  };
  afterEach(() => Promise.all(started.splice(0).map((one) => one.end())));

  it.each([
    ['ends', 'process.exit(3)', /ended with code 3$/],
    ['ends with words', "console.error('one');console.error('no room');process.exit(1)", /ended with code 1: no room$/],
    ['is killed', "process.kill(process.pid, 'SIGKILL')", /ended with SIGKILL \(the system kills/],
    ['prints something else', "console.log('hello, I am no engine')", /wrote something that is no message/],
    [
      'has a header that is no JSON',
      `${FRAME}const f = frame({}); f[16] = 0; process.stdout.write(f)`,
      /malformed header/,
    ],
  ])('fails each call with one line when the worker %s', async (_, program, message) => {
    const one = start(`process.stdin.once('data', () => { ${program} })`);
    const died = new Promise<Error>((resolve) => {
      one.onDeath = resolve;
    });
    const calls = [one.call('state', { id: 1 }), one.call('state', { id: 2 })];
    for (const call of calls) await expect(call).rejects.toThrow(message);
    expect((await died).message).toMatch(message);
    expect((await died).message).not.toContain('\n');
    await expect(one.call('state', { id: 3 })).rejects.toThrow(message);
  });

  it('ends a worker that is stuck', async () => {
    const one = await onFakeClock(async (pass) => {
      const stuck = start("process.stdin.once('data', () => { for (;;); })", 600);
      const call = expect(stuck.call('state', {})).rejects.toThrow('has not answered for 0.6 s');
      await pass(1200);
      await call;
      return stuck;
    });
    await one.end();
    expect(isAlive(one.pid as number)).toBe(false);
  });

  it('waits for a worker that computes, as long as its reader answers', async () => {
    const answer = `${FRAME}
      let heard = 0;
      process.stdin.on('data', () => {
        for (const type of ['pong', 'heard']) process.stdout.write(frame({ type }));
        if (++heard === 20) process.stdout.write(frame({ type: 'answer', id: 0, value: { late: true } }));
      });`;
    await onFakeClock(async (pass) => {
      const one = start(answer, 600);
      let [heard, hasAnswered, passedMs] = [0, false, 0];
      one.onFrame = () => heard++;
      const call = one.call('state', {}).finally(() => {
        hasAnswered = true;
      });
      for (; !hasAnswered; passedMs += 100) {
        const before = heard;
        await pass(100); // the next ping
        await eventually(() => hasAnswered || heard > before);
      }
      expect((await call).value).toEqual({ late: true });
      expect(passedMs).toBeGreaterThan(2 * 600);
    });
  });

  it('ends a call whose loss throws with its error, and tells the worker', async () => {
    const one = start(ASKING);
    const asked: unknown[] = [];
    const call = one.call('accumulate', {}, {}, ({ header }) => {
      asked.push(header.asked);
      throw new RangeError('a loss that fails');
    });
    await expect(call).rejects.toThrow(new RangeError('a loss that fails'));
    expect(asked).toEqual([1]);
    expect((await one.call('accumulate', {}, {}, () => ({}))).value).toEqual({ asked: 2 });
  });

  it('lets a worker live that answered while this process stood still', async () => {
    const program = `${READER}
      let pings = 0;
      const take = ({ type, id }) => {
        if (type !== 'ping') write({ type: 'answer', id });
        else if (++pings === 6) write({ type: 'pong' });
      };`;
    await onFakeClock(async (_, stall) => {
      const one = start(program, 600);
      await one.call('state', {});
      await stall((jump) => {
        jump(600); // six pings are on their way
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000); // the answer waits in the pipe
        jump(100);
      });
      expect((await one.call('state', {})).value).toEqual({});
      expect(one.dead).toBeUndefined();
    });
  });

  it('forgets a call whose arguments cannot be sent', async () => {
    const one = start(ASKING);
    await expect(one.call('score', { n: 1n })).rejects.toThrow(TypeError);
    let questions = 0;
    const call = one.call('accumulate', {}, {}, () => {
      questions++;
      return {};
    });
    expect((await call).value).toEqual({ asked: 2 });
    expect(questions).toBe(2);
  });

  it('names a program that is missing', async () => {
    const one = new TorchProcess({ python: '/no/such/python', program: [], options: [] });
    await expect(one.call('state', {})).rejects.toThrow('/no/such/python cannot be started');
    await one.end();
  });

  it('leaves no process behind', async () => {
    const one = start("process.stdin.on('data', () => {})");
    const call = one.call('state', {});
    call.catch(() => {});
    expect(isAlive(one.pid as number)).toBe(true);
    await one.end();
    expect(isAlive(one.pid as number)).toBe(false);
    await expect(call).rejects.toThrow('ended with SIGKILL');
  });
});
