import type { GenerateRequest, Generation, OnTokens } from '../contract/sampling.js';
import { BackendError } from '../errors.js';
import { macrotask, onAbort } from '../host.js';
import type { SamplerResult } from '../model/decoder/sampling/decoder-sampler.js';
import type { NumberedRequest } from './thread/engine-protocol.js';
import type { EngineThread } from './thread/engine-thread.js';

interface WaitingGeneration {
  readonly resolve: (generation: Generation) => void;
  readonly reject: (error: unknown) => void;
  readonly stopListening: () => void;
  readonly onTokens: OnTokens | undefined;
  readonly cancel: (reason: unknown) => void;
}

/** Requests for samples: sends them to the engine's thread and keeps them until their answers come. */
export class GenerationQueue {
  readonly #thread: EngineThread;
  readonly #waiting = new Map<number, WaitingGeneration>();
  /** Requests and cancellations of this event-loop turn, sent together. */
  #requests: NumberedRequest[] = [];
  #cancelled: number[] = [];
  #nextId = 0;

  constructor(thread: EngineThread) {
    this.#thread = thread;
    thread.onMessage = (message) => {
      if (message.type === 'generated') for (const result of message.results) this.#deliver(result);
      else if (message.type === 'streamed') for (const { id, token } of message.tokens) this.#stream(id, token);
      else this.#take(message.id)?.reject(new BackendError(message.error.message));
    };
    thread.onDeath = (error) => {
      for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(error);
    };
  }

  /** @param policy Its number in the engine. */
  generate(policy: number, request: GenerateRequest, signal?: AbortSignal, onTokens?: OnTokens): Promise<Generation> {
    signal?.throwIfAborted();
    if (this.#thread.dead !== undefined) return Promise.reject(this.#thread.dead);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const cancel = (reason: unknown) => {
        this.#take(id)?.reject(reason);
        this.#cancelled.push(id);
        this.#flushSoon();
      };
      const stopListening = signal === undefined ? () => {} : onAbort(signal, () => cancel(signal.reason));
      this.#waiting.set(id, { resolve, reject, stopListening, onTokens, cancel });
      this.#thread.expectAnswers(1);
      this.#requests.push({ id, policy, request, streamed: onTokens !== undefined });
      this.#flushSoon();
    });
  }

  #take(id: number): WaitingGeneration | undefined {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(id);
    this.#thread.expectAnswers(-1);
    waiting.stopListening();
    return waiting;
  }

  /** Drops the tokens of a request that was cancelled in the meantime. */
  #stream(id: number, token: number): void {
    const waiting = this.#waiting.get(id);
    try {
      waiting?.onTokens?.([token]);
    } catch (error) {
      waiting?.cancel(error);
    }
  }

  #deliver({ id, tokens, logprobs, finishReason, policyVersion }: SamplerResult): void {
    this.#take(id)?.resolve({ tokens, logprobs, finishReason, policyVersion });
  }

  #flushSoon(): void {
    if (this.#requests.length + this.#cancelled.length > 1) return; // a flush is under way
    macrotask(() => {
      const [requests, ids] = [this.#requests, this.#cancelled];
      this.#requests = [];
      this.#cancelled = [];
      if (requests.length > 0) this.#thread.post({ type: 'generate', requests });
      if (ids.length > 0) this.#thread.post({ type: 'cancel', ids });
    });
  }
}
