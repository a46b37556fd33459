/**
 * Continuous batching: every tick admits waiting requests into free cache slots, computes what is new of their prompts, and
 * decodes one token for every running request, whatever agent or episode it belongs to. A request's random numbers depend on
 * its key and its token's index only, and rows are computed independently, so batching cannot change a result. Policies that
 * adapt one base are played together: rows of all of them go through the base's matrices at once.
 */
import type { AdapterSettings, DecoderConfig } from '../../../contract/architecture.js';
import type { Sampling } from '../../../contract/sampling.js';
import type { FinishReason } from '../../../core/episode.js';
import { ArgumentError } from '../../../core/errors.js';
import { type RandomKey, uniformAt } from '../../../core/random.js';
import { Arena } from '../../../tensor/arena.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { logitRows } from '../decoder.js';
import { forwardLayer, layerBuffers } from '../layer/layer-forward.js';
import type { AdaptedRows } from '../layer/matrix-products.js';
import { AdapterWeights, type BaseWeights, DecoderWeights } from '../weights/model-weights.js';
import { ropeTable } from '../weights/rotary-table.js';
import type { Slot } from './cache-slots.js';
import { KeyValueCache } from './key-value-cache.js';

export interface SamplerRequest extends Sampling {
  readonly id: number;
  readonly policy: string;
  readonly prompt: readonly number[];
  readonly stopTokens: readonly number[];
  readonly key: RandomKey;
}

export interface SamplerResult {
  readonly id: number;
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly finishReason: FinishReason;
  readonly policyVersion: number;
}

/** A policy that is played. */
interface Player {
  readonly policy: string;
  /** In order of their first `load`, which is the order of rows in a batch. */
  readonly index: number;
  readonly adapter: AdapterWeights | undefined;
  version: number;
}

interface Running {
  readonly request: SamplerRequest;
  readonly player: Player;
  readonly slot: Slot;
  /** Fed in the next tick: the prompt's last token, then each sampled one. */
  next: number;
  readonly tokens: number[];
  readonly logprobs: number[];
}

/** A token at its place in the cache. */
interface Row {
  readonly player: Player;
  readonly token: number;
  readonly slot: number;
  readonly position: number;
}

/** Rows of a prefill batch, and at least as many as are decoded together. */
const PREFILL_ROWS = 1024;

export class Sampler {
  readonly #kernels: Kernels;
  readonly #config: DecoderConfig;
  readonly #arena: Arena;
  readonly #rope: Float32Array;
  readonly #noRows: Int32Array;
  readonly #rowTokens: Int32Array;
  readonly #rowSlots: Int32Array;
  readonly #rowPositions: Int32Array;
  readonly #rowTopK: Int32Array;
  #decoder: BaseWeights;
  readonly #players = new Map<string, Player>();
  readonly #cache: KeyValueCache;
  readonly #waiting: SamplerRequest[] = [];
  #running: Running[] = [];

  /** @param decoder what is played, or what the policies that are played adapt. */
  constructor(kernels: Kernels, decoder: BaseWeights) {
    this.#kernels = kernels;
    this.#decoder = decoder;
    const { config } = decoder;
    this.#config = config;
    this.#arena = new Arena(kernels);
    this.#noRows = kernels.allocateIntegers(0);
    this.#rope = ropeTable(kernels, config);
    this.#cache = new KeyValueCache(kernels, config);
    this.#rowTokens = kernels.allocateIntegers(PREFILL_ROWS);
    this.#rowSlots = kernels.allocateIntegers(PREFILL_ROWS);
    this.#rowPositions = kernels.allocateIntegers(PREFILL_ROWS);
    this.#rowTopK = kernels.allocateIntegers(PREFILL_ROWS);
  }

  /**
   * Takes a copy of a policy's weights: what the trainer does next does not reach running requests. They are those of an
   * adapter of the given settings, or else of the decoder itself, which then is this policy's alone; where `trained` is
   * undefined the decoder has them already.
   */
  load(policy: string, trained: Float32Array | undefined, version: number, adapter?: AdapterSettings): void {
    let player = this.#players.get(policy);
    if (player === undefined) {
      const own = adapter && new AdapterWeights(this.#kernels, this.#config, adapter);
      player = { policy, index: this.#players.size, adapter: own, version };
      this.#players.set(policy, player);
    }
    if (trained !== undefined) {
      const weights = player.adapter ?? requireFloat32(this.#decoder);
      weights.tensors.flat.set(trained);
      weights.changed();
    }
    player.version = version;
    this.#cache.slots.forget(policy);
  }

  /** From now on plays weights of its own, equal to those that it shared with a trainer, who is about to change them. */
  separate(): void {
    const own = new DecoderWeights(this.#kernels, this.#config);
    own.tensors.flat.set(requireFloat32(this.#decoder).tensors.flat);
    this.#decoder = own;
  }

  get busy(): boolean {
    return this.#running.length > 0 || this.#waiting.length > 0;
  }

  /** Whether a request of this policy is running or waiting. */
  plays(policy: string): boolean {
    return [...this.#running.map(({ request }) => request), ...this.#waiting].some((each) => each.policy === policy);
  }

  /** @throws ArgumentError when the prompt is empty, leaves no room for a token or holds an id outside the vocabulary. */
  submit(request: SamplerRequest): void {
    const { prompt } = request;
    const { context, vocabSize } = this.#config;
    if (!this.#players.has(request.policy))
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
    this.#running = this.#running.filter((running) => {
      if (running.request.id !== id) return true;
      this.#cache.slots.release(running.slot);
      return false;
    });
  }

  /** One tick; returns the requests that it finished. */
  step(): SamplerResult[] {
    this.#admit();
    this.#decode();
    const finished: SamplerResult[] = [];
    this.#running = this.#running.filter((running) => {
      const { request, player, slot, tokens, logprobs, next } = running;
      const stopped = request.stopTokens.includes(next);
      const full = tokens.length >= request.maxTokens || request.prompt.length + tokens.length >= this.#config.context;
      if (!stopped && !full) return true;
      this.#cache.slots.release(slot);
      const finishReason = stopped ? 'stop' : 'length';
      finished.push({ id: request.id, tokens, logprobs, finishReason, policyVersion: player.version });
      return false;
    });
    return finished;
  }

  /** Moves waiting requests into slots and fills in the keys and values of all but the last token of their prompts. */
  #admit(): void {
    const copies: { from: Slot; to: Slot; length: number }[] = [];
    const rows: Row[] = [];
    const fresh = new Set<Slot>(); // slots whose prompt is computed in this tick
    const cache = this.#cache;
    if (this.#running.length === 0 && this.#waiting.length > 0)
      cache.fit(this.#waiting.map((request) => this.#positions(request)));
    while (this.#waiting.length > 0) {
      const request = this.#waiting[0] as SamplerRequest;
      const { prompt, policy } = request;
      const player = this.#players.get(policy) as Player;
      // One that is longer than the slots waits until nobody plays and they can be made larger.
      if (this.#positions(request) > cache.capacity) break;
      const taken = cache.slots.take(prompt, policy);
      if (taken === undefined) break;
      const { slot, source } = taken;
      const last = prompt.length - 1;
      // What a twin of this tick computes can be copied only as a whole, after its rows have run.
      const shared = fresh.has(source) && taken.shared < last ? 0 : taken.shared;
      if (source !== slot && shared > 0) {
        if (fresh.has(source)) copies.push({ from: source, to: slot, length: shared });
        else cache.copy(source.index, slot.index, shared);
      }
      if (!(fresh.has(source) && shared === last))
        for (let position = shared; position < last; position++)
          rows.push({ player, token: prompt[position] as number, slot: slot.index, position });
      fresh.add(slot);
      slot.tokens = prompt.slice(0, last);
      this.#waiting.shift();
      this.#running.push({ request, player, slot, next: prompt[last] as number, tokens: [], logprobs: [] });
    }
    if (this.#players.size > 1) {
      const byPlayer = (a: { player: Player }, b: { player: Player }) => a.player.index - b.player.index;
      rows.sort(byPlayer);
      this.#running.sort(byPlayer);
    }
    for (let first = 0; first < rows.length; first += PREFILL_ROWS)
      this.#forward(rows.slice(first, first + PREFILL_ROWS), 'prefill');
    for (const { from, to, length } of copies) cache.copy(from.index, to.index, length);
  }

  /** Positions of the cache that a request may come to need. */
  #positions({ prompt, maxTokens }: SamplerRequest): number {
    return Math.min(this.#config.context, prompt.length + maxTokens);
  }

  /**
   * Runs the stack over rows of any slots, each player's together; returns the residual stream [rows, width]. A prefill wants keys and values only,
   * so nothing follows the last layer's.
   */
  #forward(rows: readonly Row[], purpose: 'prefill' | 'decode'): Float32Array {
    const kernels = this.#kernels;
    const { width, layers } = this.#config;
    const count = rows.length;
    this.#arena.reset();
    const tokens = this.#rowTokens.subarray(0, count);
    const slots = this.#rowSlots.subarray(0, count);
    const positions = this.#rowPositions.subarray(0, count);
    rows.forEach((row, i) => {
      tokens[i] = row.token;
      slots[i] = row.slot;
      positions[i] = row.position;
    });
    const stream = this.#arena.take(count * width);
    const decoder = this.#decoder;
    kernels.embed(stream, decoder.tensors.embedding, tokens, count, width);
    const stack = {
      kernels,
      config: this.#config,
      rope: this.#rope,
      tensors: decoder.tensors,
      packed: decoder.forward,
      adapters: adaptedRows(rows),
    };
    const shape = { rows: count, kept: undefined };
    const buffers = layerBuffers(this.#arena, this.#config, shape, stream, true, stack.adapters);
    for (let layer = 0; layer < layers; layer++) {
      const kept = purpose === 'prefill' && layer === layers - 1 ? this.#noRows : undefined;
      forwardLayer(stack, layer, { rows: count, positions, kept }, buffers, stream, (l, { attended, qkv }) =>
        kernels.attentionCached(
          attended,
          this.#cache.keys(l),
          this.#cache.values(l),
          qkv,
          slots,
          positions,
          count,
          this.#cache.capacity,
          this.#config,
        ),
      );
    }
    return stream;
  }

  #decode(): void {
    const running = this.#running;
    if (running.length === 0) return;
    const kernels = this.#kernels;
    const { width, vocabSize, normEpsilon } = this.#config;
    const count = running.length;
    const stream = this.#forward(
      running.map(({ player, slot, next }) => {
        slot.tokens.push(next);
        return { player, token: next, slot: slot.index, position: slot.tokens.length - 1 };
      }),
      'decode',
    );
    const normed = this.#arena.take(count * width);
    const { tensors: base, forward } = this.#decoder;
    kernels.rmsNorm(normed, this.#arena.take(count), stream, base.finalNorm, count, width, normEpsilon);
    const block = Math.min(count, logitRows(vocabSize));
    const logits = this.#arena.take(block * vocabSize);
    const tokens = this.#rowTokens.subarray(0, block);
    const topK = this.#rowTopK.subarray(0, block);
    const [logprobs, uniforms, inverse, topP] = [0, 0, 0, 0].map(() => this.#arena.take(block)) as [
      Float32Array,
      Float32Array,
      Float32Array,
      Float32Array,
    ];
    for (let first = 0; first < count; first += block) {
      const n = Math.min(block, count - first);
      for (let i = 0; i < n; i++) {
        const { request, tokens: written } = running[first + i] as Running;
        uniforms[i] = uniformAt(request.key, written.length);
        inverse[i] = request.temperature === 0 ? 0 : 1 / request.temperature;
        topK[i] = request.topK;
        topP[i] = request.topP;
      }
      const hidden = normed.subarray(first * width, (first + n) * width);
      kernels.linear(logits, hidden, forward.head, n, width, vocabSize, false);
      kernels.sampleTokens(tokens, logprobs, logits, uniforms, inverse, topK, topP, n, vocabSize);
      for (let i = 0; i < n; i++) {
        const one = running[first + i] as Running;
        one.next = tokens[i] as number;
        one.tokens.push(one.next);
        one.logprobs.push(logprobs[i] as number);
      }
    }
  }
}

/** Weights that training may change. */
function requireFloat32(decoder: BaseWeights): DecoderWeights {
  if (decoder instanceof DecoderWeights) return decoder;
  throw new ArgumentError('weights in bfloat16 stay as they are');
}

/** The adapters of rows that come player by player; none where no player has one. */
function adaptedRows(rows: readonly Row[]): AdaptedRows[] {
  if (rows.every(({ player }) => player.adapter === undefined)) return [];
  return rows.flatMap(({ player }, row) =>
    rows[row + 1]?.player === player ? [] : { adapter: player.adapter?.forward, end: row + 1 },
  );
}
