import { describe, expect, it } from 'vitest';
import { sampleOf } from '../../../../../test/support/samples.js';
import type { FromWorker } from './engine-protocol.js';
import { type EngineLink, EngineThread } from './engine-thread.js';
import { packSamples, unpackSamples } from './sample-batch.js';

/** A link to an engine that answers when the test calls for it, and that ends after a delay, like a worker. */
class ScriptedLink implements EngineLink {
  receive: (message: FromWorker) => void = () => {};
  /** Lets the engine end. */
  stop: () => void = () => {};
  /** Whether the process lives on for the engine's sake. */
  held = false;

  post(): void {}

  listen(receive: (message: FromWorker) => void): void {
    this.receive = receive;
  }

  holdProcess(held: boolean): void {
    this.held = held;
  }

  /** `dispose` waits for the end of the worker, even if the worker did not keep the process alive. */
  end(): Promise<void> {
    this.held = true;
    return new Promise((resolve) => {
      this.stop = resolve;
    });
  }
}

const HARDWARE = { kernels: 'reference', isa: 'none', threads: 1, notice: undefined };

describe('a thread that computes', () => {
  it('keeps the process alive while an answer is awaited, and no longer', async () => {
    const link = new ScriptedLink();
    const thread = new EngineThread(link, HARDWARE);
    const hashes = [thread.call('baseHash', 0), thread.call('baseHash', 1)];
    expect(link.held).toBe(true);
    link.receive({ type: 'answer', id: 0, value: 'one' });
    expect(link.held).toBe(true);
    link.receive({ type: 'answer', id: 1, value: 'two' });
    expect(link.held).toBe(false);
    expect(await Promise.all(hashes)).toEqual(['one', 'two']);
  });

  it('does not keep the process alive for a call whose arguments cannot be sent', async () => {
    const link = new ScriptedLink();
    const thread = new EngineThread(link, HARDWARE);
    const post = () => {
      structuredClone(() => {});
    };
    link.post = post;
    await expect(thread.call('baseHash', 0)).rejects.toThrow('could not be cloned');
    expect(link.held).toBe(false);
  });

  it('keeps the process alive until it has ended, though answers to calls from before come in', async () => {
    const link = new ScriptedLink();
    const thread = new EngineThread(link, HARDWARE);
    const calls = [0, 1, 2].map((id) => thread.call('baseHash', id));
    link.receive({ type: 'answer', id: 0, error: { name: 'ArgumentError', message: 'too long' } });
    const disposed = thread.dispose();
    link.receive({ type: 'answer', id: 1, value: 'late' });
    link.receive({ type: 'answer', id: 2, value: 'later' });
    expect(link.held).toBe(true);
    link.stop();
    await disposed;
    await expect(calls[0]).rejects.toThrow('too long');
    for (const call of calls.slice(1)) await expect(call).rejects.toThrow('the engine was disposed of');
  });
});

describe('packSamples', () => {
  it('packs what unpackSamples takes apart, optional log-probs where samples have them', () => {
    const facts = { agent: 'verifier', temperature: 0.5, episodeTokens: 4 };
    const spans = [
      { start: 1, end: 2 },
      { start: 2, end: 3 },
    ];
    const plain = [sampleOf([1, 2], [1, 1], { spans }), sampleOf([3], [-1], facts)];
    expect(unpackSamples(packSamples(plain))).toEqual(plain);
    const held = plain.map((sample, i) => ({ ...sample, referenceLogprobs: sample.tokens.map((t) => -t - i) }));
    const rows = held.map((sample) => ({ ...sample, referenceLogprobs: Float32Array.from(sample.referenceLogprobs) }));
    expect(unpackSamples(packSamples(rows))).toEqual(rows);
    expect(unpackSamples(packSamples([]))).toEqual([]);
  });

  it('refuses an optional field that only some samples have', () => {
    const some = [sampleOf([1], [1]), sampleOf([1], [1], { referenceLogprobs: Float32Array.of(0, -1) })];
    expect(() => packSamples(some)).toThrow('1 of 2 samples have referenceLogprobs: expected all or none');
  });
});
