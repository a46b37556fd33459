/**
 * Continuous batching: every tick admits waiting requests into free cache slots, computes the keys and values of their
 * prompts, and decodes one token for every running request, whatever agent or episode it belongs to. A request's random
 * numbers depend on its key and its token's index only, and rows are computed independently, so batching cannot change
 * a result. Policies that adapt one base sample together: rows of all of them pass through the base's matrices at once.
 */

import { ArgumentError } from '../../../../base/errors.js';
import type { RandomKey } from '../../../../base/math.js';
import type { FinishReason } from '../../../../base/nouns.js';
import type { AdapterSettings, Precision } from '../../../contract/architecture.js';
import type { Sampling } from '../../../contract/sampling.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats } from '../../../tensor/memory.js';
import { AdapterWeights, type BaseWeights, DecoderWeights } from '../weights/model-weights.js';
import type { Slot } from './cache-slots.js';
import { CachedDecoder, type CachedPolicy, type CachedRow } from './cached-decoder.js';

export interface SamplerRequest extends Sampling {
  readonly id: number;
  readonly policy: string;
  readonly prompt: readonly number[];
  readonly stopTokens: readonly number[];
  readonly key: RandomKey;
  /** Receives each token when it is drawn. */
  readonly onToken?: ((token: number) => void) | undefined;
}

export interface SamplerResult {
  readonly id: number;
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly finishReason: FinishReason;
  readonly policyVersion: number;
}

/** A request that has a slot. */
interface Running {
  readonly request: SamplerRequest;
  readonly policy: CachedPolicy;
  readonly slot: Slot;
  /** The token that the next tick feeds: the prompt's last one, then each sampled one. */
  next: number;
  readonly tokens: number[];
  readonly logprobs: number[];
}

export class DecoderSampler {
  readonly #kernels: Kernels;
  readonly #decoder: CachedDecoder;
  readonly #policies = new Map<string, CachedPolicy>();
  readonly #waiting: SamplerRequest[] = [];
  #loaded = 0;
  #running: Running[] = [];

  /**
   * @param weights The weights that sample, or those that the sampled policies adapt
   * @param precision The precision of matrix products
   */
  constructor(kernels: Kernels, weights: BaseWeights, precision: Precision = 'float32') {
    this.#kernels = kernels;
    this.#decoder = new CachedDecoder(kernels, weights, precision);
  }

  /**
   * Copies a policy's weights, so that further training does not affect running requests. With `adapter` they are the
   * weights of an adapter with these settings; without it they are the decoder's own, and the decoder then belongs to
   * this policy alone. If `trained` is undefined, the decoder has the weights already.
   * @param kernels Their memory holds the copy; default: the sampler's. The policy's own give it back with the policy.
   */
  load(
    policy: string,
    trained: Floats | undefined,
    version: number,
    adapter?: AdapterSettings,
    kernels = this.#kernels,
  ): void {
    let sampled = this.#policies.get(policy);
    if (sampled === undefined) {
      const weights = adapter && new AdapterWeights(kernels, this.#decoder.config, adapter);
      sampled = { name: policy, index: this.#loaded++, adapter: weights, version };
      this.#policies.set(policy, sampled);
    }
    if (trained !== undefined) {
      const weights = sampled.adapter ?? requireFloat32(this.#decoder.weights);
      this.#kernels.copy({ to: weights.tensors.flat, from: trained });
      weights.changed();
    }
    sampled.version = version;
    this.#decoder.cache.slots.forget(policy);
  }

  /** Gives back a policy's weights. @throws ArgumentError while a request of it runs or waits */
  unload(policy: string): void {
    if (this.plays(policy)) throw new ArgumentError('a policy that is playing cannot be unloaded');
    this.#policies.delete(policy);
    this.#decoder.cache.slots.forget(policy);
  }

  /** Replaces the weights that the sampler shares with a trainer by a copy, before the trainer changes them. */
  separate(): void {
    const copy = new DecoderWeights(this.#kernels, this.#decoder.config);
    this.#kernels.copy({ to: copy.tensors.flat, from: requireFloat32(this.#decoder.weights).tensors.flat });
    this.#decoder.weights = copy;
  }

  get busy(): boolean {
    return this.#running.length > 0 || this.#waiting.length > 0;
  }

  /** Whether a request of this policy is running or waiting. */
  plays(policy: string): boolean {
    return [...this.#running.map(({ request }) => request), ...this.#waiting].some((each) => each.policy === policy);
  }

  /**
   * Adds a request to the queue.
   * @throws ArgumentError when the prompt is empty, leaves no room for a token or holds an id outside the vocabulary
   */
  submit(request: SamplerRequest): void {
    const { prompt } = request;
    const { context, vocabSize } = this.#decoder.config;
    if (!this.#policies.has(request.policy))
      throw new ArgumentError('no weights have been published for this policy yet');
    if (prompt.length < 1 || prompt.length >= context)
      throw new ArgumentError(`a prompt of ${prompt.length} tokens leaves no room in a context of ${context}`);
    const wrong = prompt.find((token) => !(Number.isInteger(token) && token >= 0 && token < vocabSize));
    if (wrong !== undefined) throw new ArgumentError(`token ${wrong} is outside the vocabulary of ${vocabSize}`);
    this.#waiting.push(request);
  }

  /** Removes a request, whether it waits or runs. */
  cancel(id: number): void {
    const waiting = this.#waiting.findIndex((request) => request.id === id);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    this.#running = this.#running.filter((running) => {
      if (running.request.id !== id) return true;
      this.#decoder.cache.slots.release(running.slot);
      return false;
    });
  }

  /** Runs one tick; returns the results of the requests that it finished. */
  async step(): Promise<SamplerResult[]> {
    this.#admit();
    await this.#decode();
    const { cache, config } = this.#decoder;
    const finished: SamplerResult[] = [];
    this.#running = this.#running.filter((running) => {
      const { request, policy, slot, tokens, logprobs, next } = running;
      const stopped = request.stopTokens.includes(next);
      const full = tokens.length >= request.maxTokens || request.prompt.length + tokens.length >= config.context;
      if (!stopped && !full) return true;
      cache.slots.release(slot);
      const finishReason = stopped ? 'stop' : 'length';
      finished.push({ id: request.id, tokens, logprobs, finishReason, policyVersion: policy.version });
      return false;
    });
    return finished;
  }

  /** Moves waiting requests into slots and fills in the keys and values of all but the last token of their prompts. */
  #admit(): void {
    const copies: { from: Slot; to: Slot; length: number }[] = [];
    const rows: CachedRow[] = [];
    const fresh = new Set<Slot>(); // slots whose prompt is computed in this tick
    const { cache } = this.#decoder;
    if (this.#running.length === 0 && this.#waiting.length > 0)
      cache.fit(this.#waiting.map((request) => this.#positions(request)));
    while (this.#waiting.length > 0) {
      const request = this.#waiting[0] as SamplerRequest;
      const { prompt } = request;
      const policy = this.#policies.get(request.policy) as CachedPolicy;
      // A request longer than the slots waits until none is running, so that the slots can be made larger.
      if (this.#positions(request) > cache.capacity) break;
      const place = cache.slots.take(prompt, policy.name);
      if (place === undefined) break;
      const { slot, source } = place;
      const last = prompt.length - 1;
      // A prompt that is computed in this tick can only be copied as a whole, after its rows have run.
      const shared = fresh.has(source) && place.shared < last ? 0 : place.shared;
      if (source !== slot && shared > 0) {
        if (fresh.has(source)) copies.push({ from: source, to: slot, length: shared });
        else cache.copy(source.index, slot.index, shared);
      }
      if (!(fresh.has(source) && shared === last))
        for (let position = shared; position < last; position++)
          rows.push({ policy, token: prompt[position] as number, slot: slot.index, position });
      fresh.add(slot);
      slot.tokens = prompt.slice(0, last);
      this.#waiting.shift();
      this.#running.push({ request, policy, slot, next: prompt[last] as number, tokens: [], logprobs: [] });
    }
    if (this.#policies.size > 1) {
      rows.sort(byPolicy);
      this.#running.sort(byPolicy);
    }
    this.#decoder.prefill(rows);
    for (const { from, to, length } of copies) cache.copy(from.index, to.index, length);
  }

  /** The most positions of the cache that a request may need. */
  #positions({ prompt, maxTokens }: SamplerRequest): number {
    return Math.min(this.#decoder.config.context, prompt.length + maxTokens);
  }

  /** Samples one token for every running request. */
  async #decode(): Promise<void> {
    const running = this.#running;
    if (running.length === 0) return;
    const [tokens, logprobs] = await this.#decoder.decode(
      running.map(({ policy, slot, next }) => {
        slot.tokens.push(next);
        return { policy, token: next, slot: slot.index, position: slot.tokens.length - 1 };
      }),
      running,
    );
    running.forEach((one, i) => {
      one.next = tokens[i] as number;
      one.tokens.push(one.next);
      one.logprobs.push(logprobs[i] as number);
      one.request.onToken?.(one.next);
    });
  }
}

const byPolicy = (a: { policy: CachedPolicy }, b: { policy: CachedPolicy }) => a.policy.index - b.policy.index;

/** The weights as weights that can change. @throws ArgumentError for weights in bfloat16, which never change */
function requireFloat32(weights: BaseWeights): DecoderWeights {
  if (weights instanceof DecoderWeights) return weights;
  throw new ArgumentError('weights in bfloat16 stay as they are');
}
