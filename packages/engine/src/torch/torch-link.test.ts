import { afterEach, describe, expect, it } from 'vitest';
import type { FromWorker, NumberedRequest } from '../embedded/thread/engine-protocol.js';
import { linkTo } from './torch-link.js';
import { TorchProcess } from './torch-process.js';

/** A worker in JavaScript that says that it is slow, and answers each frame's call, whose number is its order. */
const ANSWERS = `
  let id = 0;
  const send = (header) => {
    const text = Buffer.from(JSON.stringify({ arrays: [], ...header }));
    const head = Buffer.alloc(16);
    head.write('drms');
    head.writeUInt32LE(text.length, 4);
    process.stdout.write(Buffer.concat([head, text]));
  };
  process.stdin.on('data', () => {
    send({ type: 'progress', message: 'slow for now' });
    send({ type: 'answer', id: id++, value: { hash: 'of a base' } });
  });`;

describe('the messages to the engine on PyTorch', () => {
  let child: TorchProcess;
  afterEach(() => child.end());

  it('go on after requests that cannot be sent, which are refused, and name what is slow', async () => {
    child = new TorchProcess({ python: process.execPath, program: ['-e', ANSWERS], options: [] });
    const notices: string[] = [];
    const link = linkTo(child, (message) => void notices.push(message));
    const received: FromWorker[] = [];
    const answered = new Promise<void>((resolve) => {
      link.listen(
        (message) => {
          received.push(message);
          if (message.type === 'answer') resolve();
        },
        () => {},
      );
    });
    const request = { prompt: Int32Array.of(1, 2), maxTokens: 1, key: [1, 2], temperature: 1n };
    const requests = [4, 5].map((id) => ({ id, policy: 0, streamed: false, request }));
    link.post({ type: 'generate', requests: requests as unknown as NumberedRequest[] }, []);
    link.post({ type: 'call', id: 6, method: 'baseHash', args: [0] }, []);
    child.hold(true);
    await answered;
    expect(notices).toEqual(['slow for now']);
    expect(received).toMatchObject([
      { type: 'refused', id: 4, error: { message: expect.stringContaining('BigInt') } },
      { type: 'refused', id: 5 },
      { type: 'answer', id: 6, value: 'of a base' },
    ]);
  });
});
