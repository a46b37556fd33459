/**
 * Continuous batching: every tick admits waiting requests into free cache slots, computes the keys and values of their
 * prompts, and decodes one token for every running request, whatever agent or episode it belongs to. A request's random
 * numbers depend on its key and its token's index only, and rows are computed independently, so batching cannot change
 * a result. Policies that adapt one base sample together: rows of all of them pass through the base's matrices at once.
 */

import type { AdapterSettings, Precision } from '../../../contract/architecture.js';
import type { Sampling } from '../../../contract/sampling.js';
import { ArgumentError } from '../../../errors.js';
import type { RandomKey } from '../../../math.js';
import type { FinishReason } from '../../../nouns.js';
import type { Arena } from '../../../tensor/arena.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats } from '../../../tensor/memory.js';
import { AdapterWeights, type BaseWeights, DecoderWeights } from '../weights/model-weights.js';
import { commonPrefix, type Slot } from './cache-slots.js';
import { CachedDecoder, type CachedPolicy, type CachedRow } from './cached-decoder.js';

export interface SamplerRequest extends Sampling {
  readonly id: number;
  readonly policy: string;
  readonly prompt: readonly number[];
  readonly stopTokens: readonly number[];
  readonly key: RandomKey;
  readonly onToken?: ((token: number) => void) | undefined;
}

export interface SamplerResult {
  readonly id: number;
  readonly tokens: number[];
  /** The last one is not finite if the logits were not: the token means nothing then, and the response ends with it. */
  readonly logprobs: number[];
  readonly finishReason: FinishReason;
  readonly policyVersion: number;
}

interface Running {
  readonly request: SamplerRequest;
  readonly policy: CachedPolicy;
  readonly slot: Slot;
  /** The token that the next tick feeds: the prompt's last one, then each sampled one. */
  next: number;
  /**
   * A request of the same policy with the same tokens so far, whose row and slot serve both: the own slot stays unused.
   * Undefined after they have drawn different tokens.
   */
  twin: Running | undefined;
  /** The number of its row in this tick. A twin has none of its own. */
  row: number;
  /** The request whose row came before its own in the last tick, and how many first tokens both have. */
  neighbour: { readonly before: Running | undefined; readonly alike: number } | undefined;
  readonly tokens: number[];
  readonly logprobs: number[];
}

/** A prompt whose keys and values are computed in this tick. */
interface FreshPrompt {
  /** The prompt that is computed before it and has its first `shared` tokens. */
  readonly after: Slot | undefined;
  readonly shared: number;
}

/** The fewest tokens for which a prompt waits for another of the same tick that begins alike. */
const LEAST_SHARED = 16;

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
   * @param arena Working memory that trainers may use between ticks; default: the sampler's own
   */
  constructor(kernels: Kernels, weights: BaseWeights, precision: Precision = 'float32', arena?: Arena) {
    this.#kernels = kernels;
    this.#decoder = new CachedDecoder(kernels, weights, precision, arena);
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

  cancel(id: number): void {
    const waiting = this.#waiting.findIndex((request) => request.id === id);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    this.#end(this.#running.filter(({ request }) => request.id === id));
  }

  /** Runs one tick; returns the results of the requests that it finished. */
  async step(): Promise<SamplerResult[]> {
    this.#admit();
    await this.#decode();
    const { context } = this.#decoder.config;
    const results: SamplerResult[] = [];
    const finished = this.#running.filter(({ request, policy, tokens, logprobs, next }) => {
      const stopped = request.stopTokens.includes(next);
      const full = tokens.length >= request.maxTokens || request.prompt.length + tokens.length >= context;
      if (!stopped && !full && Number.isFinite(logprobs.at(-1))) return false;
      const finishReason = stopped ? 'stop' : 'length';
      results.push({ id: request.id, tokens, logprobs, finishReason, policyVersion: policy.version });
      return true;
    });
    this.#end(finished);
    return results;
  }

  /** Removes running requests. Requests that no longer have the tokens of their twin go on in their own slots. */
  #end(ended: readonly Running[]): void {
    const { cache } = this.#decoder;
    const isEnded = new Set(ended);
    this.#running = this.#running.filter((running) => !isEnded.has(running));
    const leaders = new Map<Running, Running[]>(); // by the twin that they leave
    for (const running of this.#running) {
      const { twin, slot, next } = running;
      if (twin === undefined || (twin.next === next && !isEnded.has(twin))) continue;
      const others = leaders.get(twin) ?? [];
      leaders.set(twin, others);
      running.twin = others.find((other) => other.next === next);
      if (running.twin !== undefined) continue;
      others.push(running);
      slot.tokens = [...twin.slot.tokens];
      if (slot.tokens.length > 0) cache.copy(twin.slot.index, slot.index, slot.tokens.length);
    }
    for (const { slot } of ended) cache.slots.release(slot);
  }

  /**
   * Moves waiting requests into slots and fills in the keys and values of all but the last token of their prompts.
   * Equal prompts are computed once. Prompts that begin like another one are computed after it, without those tokens.
   */
  #admit(): void {
    const copies: { from: Slot; to: Slot; length: number }[] = [];
    const [rows, laterRows]: [CachedRow[], CachedRow[]] = [[], []];
    const fresh = new Map<Slot, FreshPrompt>();
    const admitted = new Map<string, Running>();
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
      const key = [policy.index, ...prompt].join(' ');
      const twin = admitted.get(key);
      const running = {
        request,
        policy,
        slot,
        next: prompt[last] as number,
        twin,
        row: 0,
        neighbour: undefined,
        tokens: [],
        logprobs: [],
      };
      this.#waiting.shift();
      this.#running.splice(sortedIndex(this.#running, running, byPolicyAndPrompt), 0, running);
      if (twin !== undefined) continue;
      admitted.set(key, running);
      const prefix = freshPrefix(fresh, place, last);
      if (source !== slot && prefix.shared > 0) {
        if (prefix.after !== undefined) copies.push({ from: prefix.after, to: slot, length: prefix.shared });
        else cache.copy(source.index, slot.index, prefix.shared);
      }
      for (let position = prefix.shared; position < last; position++)
        (prefix.after === undefined ? rows : laterRows).push({
          policy,
          token: prompt[position] as number,
          slot: slot.index,
          position,
          alike: 0,
        });
      fresh.set(slot, prefix);
      slot.tokens = prompt.slice(0, last);
    }
    if (this.#policies.size > 1) for (const some of [rows, laterRows]) some.sort(byPolicy);
    this.#decoder.prefill(rows);
    for (const { from, to, length } of copies) cache.copy(from.index, to.index, length);
    this.#decoder.prefill(laterRows);
  }

  #positions({ prompt, maxTokens }: SamplerRequest): number {
    return Math.min(this.#decoder.config.context, prompt.length + maxTokens);
  }

  /** Samples one token for every running request. Twins draw from the same row. */
  async #decode(): Promise<void> {
    if (this.#running.length === 0) return;
    const { leaders, drawing, rowOf } = drawsOf(this.#running);
    const rows = leaders.map((leader, i) => {
      const { policy, slot, next } = leader;
      slot.tokens.push(next);
      const alike = tokensAlike(leader, leaders[i - 1]);
      return { policy, token: next, slot: slot.index, position: slot.tokens.length - 1, alike };
    });
    const [tokens, logprobs] = await this.#decoder.decode(rows, drawing, rowOf);
    drawing.forEach((one, i) => {
      one.next = tokens[i] as number;
      one.tokens.push(one.next);
      one.logprobs.push(logprobs[i] as number);
      one.request.onToken?.(one.next);
    });
  }
}

/**
 * The requests whose rows are computed, and all requests in the order of the rows that they draw from: a leader, then
 * its twins. Plain loops: this runs for every token of every request.
 */
function drawsOf(running: readonly Running[]) {
  const groups: Running[][] = [];
  for (const one of running) if (one.twin === undefined) one.row = groups.push([one]) - 1;
  if (groups.length === running.length) return { leaders: running, drawing: running, rowOf: undefined };
  for (const one of running) if (one.twin !== undefined) groups[one.twin.row]?.push(one);
  const leaders: Running[] = [];
  const drawing: Running[] = [];
  const rowOf = new Int32Array(running.length);
  for (const group of groups) {
    rowOf.fill(leaders.push(group[0] as Running) - 1, drawing.length, drawing.length + group.length);
    drawing.push(...group);
  }
  return { leaders, drawing, rowOf };
}

/**
 * The part of a prompt that need not be computed. A prompt that others wait for is computed in the first pass of the
 * tick, so a prompt that begins like one of the second pass waits for what that one waits for.
 */
function freshPrefix(
  fresh: ReadonlyMap<Slot, FreshPrompt>,
  { source, shared }: { readonly source: Slot; readonly shared: number },
  last: number,
): FreshPrompt {
  const computed = fresh.get(source);
  if (computed === undefined) return { after: undefined, shared };
  const prefix =
    computed.after === undefined
      ? { after: source, shared }
      : { after: computed.after, shared: Math.min(shared, computed.shared) };
  return prefix.shared >= Math.min(last, LEAST_SHARED) && prefix.shared > 0 ? prefix : { after: undefined, shared: 0 };
}

const byPolicy = (a: { policy: CachedPolicy }, b: { policy: CachedPolicy }) => a.policy.index - b.policy.index;

/** Prompts that begin alike are neighbours: their rows read the common positions once. */
function byPolicyAndPrompt(a: Running, b: Running): number {
  const [one, other] = [a.request.prompt, b.request.prompt];
  const at = commonPrefix(one, other);
  return byPolicy(a, b) || (one[at] ?? -1) - (other[at] ?? -1);
}

/** Where an item goes in sorted items: behind its equals. */
function sortedIndex<Item>(items: readonly Item[], item: Item, compare: (a: Item, b: Item) => number): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(items[middle] as Item, item) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many first tokens a request has in common with the one before it. They are counted when it gets a new one. */
function tokensAlike(running: Running, before: Running | undefined): number {
  if (running.neighbour === undefined || running.neighbour.before !== before) {
    const alike = before?.policy === running.policy ? commonPrefix(before.slot.tokens, running.slot.tokens) : 0;
    running.neighbour = { before, alike };
  }
  return running.neighbour.alike;
}

/** The weights as weights that can change. @throws ArgumentError for weights in bfloat16, which never change */
function requireFloat32(weights: BaseWeights): DecoderWeights {
  if (weights instanceof DecoderWeights) return weights;
  throw new ArgumentError('weights in bfloat16 stay as they are');
}
