/** Sampling sessions: fixed weights, and the samples of them. */
import { randomInt, randomUUID } from 'node:crypto';
import { type GenerateRequest, type Generation, isGreedy, type WeightsSpec } from '@drmas/engine/contract';
import type { EmbeddedBackend, EmbeddedFrozen } from '@drmas/engine/embedded';
import { DialectError } from '@drmas/engine/errors';
import { type RandomKey, randomKey } from '@drmas/engine/math';
import type { SampleBody } from './bodies.js';
import type { ByteBudget } from './memory-budget.js';
import type { ServedModel } from './served-model.js';
import { refused, requireIds } from './token-pass.js';

/** The most snapshots of one model, which are only in memory; older ones are closed. */
const MOST_SNAPSHOTS = 8;
/** The most open samplers of saved weights. A closed one is opened again when it is used. */
const MOST_OPEN = 16;
const MOST_SESSIONS = 4096;

interface Sampler {
  readonly handle: Promise<EmbeddedFrozen>;
  /** The model of a snapshot that is only in memory. */
  readonly model: string | undefined;
  /** The number of samples in progress. The sampler may be closed when it is 0. */
  running: number;
  closed: boolean;
  /** Gives back the memory that was taken for it. */
  readonly release: () => void;
}

interface SamplingSession {
  readonly session: string;
  readonly about: SamplerSource;
  readonly key: string;
  /** Undefined for a snapshot, which is only in memory. */
  readonly weights: WeightsSpec | undefined;
  /** The bytes that its sampler takes. */
  readonly bytes: number;
}

/** The sampled weights, in the protocol's names. */
export interface SamplerSource {
  readonly base_model: string;
  readonly model_path?: string;
}

export interface SampleOutput {
  readonly sequences: readonly Pick<Generation, 'tokens' | 'logprobs' | 'finishReason'>[];
  /** One per token of the prompt. The first is null, because no token is before it. */
  readonly promptLogprobs: readonly (number | null)[] | undefined;
}

export class Samplers {
  readonly #backend: EmbeddedBackend;
  readonly #memory: ByteBudget;
  readonly #sessions = new Map<string, SamplingSession>();
  /** The least recently used first. */
  readonly #samplers = new Map<string, Sampler>();

  constructor(backend: EmbeddedBackend, memory: ByteBudget) {
    this.#backend = backend;
    this.#memory = memory;
  }

  open(opened: SamplingSession): string {
    this.#requirePlace();
    const id = `sampling_${randomUUID()}`;
    this.#sessions.set(id, opened);
    return id;
  }

  /** Later training does not change the sampled weights. @throws DialectError if there is too little memory */
  async snapshot({ session, id: model, policy, about }: ServedModel, bytes: number): Promise<string> {
    this.#requirePlace();
    const release = this.#take(bytes);
    const handle = this.#publish({ type: 'like', policy }, `snapshot_${model}`);
    await handle.catch(release);
    await handle;
    const opened = { session, about: { base_model: about.baseModel }, weights: undefined, bytes };
    const id = this.open({ ...opened, key: `snapshot_${randomUUID()}` });
    const { key } = this.#session(id);
    this.#samplers.set(key, { handle, model, running: 0, closed: false, release });
    const snapshots = [...this.#samplers].filter(([, sampler]) => sampler.model === model);
    for (const [old] of snapshots.slice(0, -MOST_SNAPSHOTS)) this.#forget(old);
    return id;
  }

  /** Ends the sampling sessions of a session. */
  end(session: string): void {
    for (const [id, each] of this.#sessions) {
      if (each.session !== session) continue;
      this.#sessions.delete(id);
      if (each.weights === undefined) this.#forget(each.key);
    }
  }

  /** Ends the sampling sessions on weights in files that were removed. Samples in progress are finished. */
  remove(key: string): void {
    for (const [id, each] of this.#sessions) if (each.key === key) this.#sessions.delete(id);
    this.#forget(key);
  }

  /** @throws DialectError 404 for a session that does not exist (any more), 400 if there is too little memory */
  async sample(id: string, draws: Draws): Promise<SampleOutput> {
    const session = this.#session(id);
    const sampler = this.#samplerOf(session);
    sampler.running++;
    try {
      return await draw(await sampler.handle, draws);
    } finally {
      sampler.running--;
      await this.#giveBack(sampler);
    }
  }

  /** @throws DialectError 404 for a session that does not exist (any more) */
  sourceOf(id: string): SamplerSource {
    return this.#session(id).about;
  }

  #session(id: string): SamplingSession {
    const session = this.#sessions.get(id);
    if (session === undefined) throw new DialectError(404, 'unknown_sampler', 'Sampling session not found');
    return session;
  }

  #samplerOf({ key, weights, bytes }: SamplingSession): Sampler {
    let sampler = this.#samplers.get(key);
    this.#samplers.delete(key);
    if (sampler === undefined) {
      if (weights === undefined) throw new DialectError(404, 'unknown_sampler', 'Sampling session no longer there');
      const release = this.#take(bytes);
      sampler = { handle: this.#publish(weights, key), model: undefined, running: 0, closed: false, release };
      sampler.handle.catch(() => {
        this.#samplers.delete(key);
        release();
      });
    }
    this.#samplers.set(key, sampler);
    const open = [...this.#samplers].filter(([, { model }]) => model === undefined);
    for (const [old] of open.slice(0, -MOST_OPEN)) this.#forget(old);
    return sampler;
  }

  #requirePlace(): void {
    if (this.#sessions.size >= MOST_SESSIONS)
      throw new DialectError(429, 'busy', `there are already ${MOST_SESSIONS} sampling sessions; try again later`);
  }

  /** Takes memory; closes samplers of saved weights that are not in use, the oldest first, if there is too little. */
  #take(bytes: number): () => void {
    for (const [key, { model, running }] of this.#samplers) {
      if (this.#memory.free >= bytes) break;
      if (model === undefined && running === 0) this.#forget(key);
    }
    return this.#memory.take(bytes, 'a sampling session');
  }

  async #publish(weights: WeightsSpec, name: string): Promise<EmbeddedFrozen> {
    const handle = await this.#backend.open(weights, 'frozen', name);
    await handle.publish();
    return handle;
  }

  #forget(key: string): void {
    const sampler = this.#samplers.get(key);
    this.#samplers.delete(key);
    if (sampler === undefined) return;
    sampler.closed = true;
    void this.#giveBack(sampler);
  }

  async #giveBack(sampler: Sampler): Promise<void> {
    if (!sampler.closed || sampler.running > 0) return;
    sampler.release();
    await sampler.handle.then((handle) => handle.close()).catch(() => {}); // the engine may have ended meanwhile
  }
}

/** A base model, as far as requests are checked against it. */
export type SampledBase = Pick<EmbeddedFrozen, 'config' | 'tokenizer'>;

export interface Draws {
  readonly prompt: number[];
  readonly request: Omit<GenerateRequest, 'key'>;
  /** One a sample. */
  readonly keys: readonly RandomKey[];
  readonly promptLogprobs: boolean;
}

/** @throws DialectError 400 for a request that cannot be sampled */
export function drawsOf(
  { num_samples, sampling_params, prompt_logprobs, ...body }: SampleBody,
  base: SampledBase,
): Draws {
  const { max_tokens, seed, key, temperature, top_k, top_p, stop } = sampling_params;
  const { context, vocabSize } = base.config;
  const length = body.prompt.chunks.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const room = context - length;
  if (length < 1 || room < 1) throw refused(`a prompt of ${length} tokens leaves no room in a context of ${context}`);
  const prompt = body.prompt.chunks.flatMap(({ tokens }) => tokens);
  requireIds(prompt, { vocabSize, context }, 'the prompt');
  const stream = seed ?? randomInt(2 ** 32);
  return {
    prompt,
    request: {
      prompt,
      temperature,
      topP: top_p,
      topK: Math.max(0, top_k),
      maxTokens: Math.min(room, max_tokens ?? room),
      stopTokens: stop === null || stop === undefined ? base.tokenizer.stopTokens : stopIds(base, stop),
    },
    keys: Array.from({ length: num_samples }, (_, i) =>
      key && i === 0 ? key : randomKey('tinker', ...(key ?? [stream]), i),
    ),
    promptLogprobs: prompt_logprobs === true,
  };
}

async function draw(model: EmbeddedFrozen, { prompt, request, keys, promptLogprobs }: Draws): Promise<SampleOutput> {
  const { temperature } = request;
  const [sequences, ofPrompt] = await Promise.all([
    Promise.all(
      keys.map(async (key) => {
        const generation = await model.generate({ ...request, key });
        // Log-probs are given at temperature 1, as a training pass computes them.
        if (isGreedy(temperature) || temperature === 1) return generation;
        const { tokens } = generation;
        const logprobs = (await logprobsOf(model, [...prompt, ...tokens])).slice(prompt.length);
        return { ...generation, logprobs };
      }),
    ),
    promptLogprobs ? logprobsOf(model, prompt) : undefined,
  ]);
  return { sequences, promptLogprobs: ofPrompt && [null, ...ofPrompt.slice(1)] };
}

/** At temperature 1, of every token but the first. */
async function logprobsOf(model: EmbeddedFrozen, tokens: readonly number[]): Promise<number[]> {
  const zeros = new Float32Array(tokens.length);
  const [row] = await model.logprobs([
    {
      tokens: Int32Array.from(tokens),
      mask: new Uint8Array(tokens.length).fill(1, 1),
      behaviourLogprobs: zeros,
      advantages: zeros,
      temperature: 1,
      policyVersion: 0,
      agent: '',
    },
  ]);
  return Array.from(row as Float32Array);
}

/** @throws DialectError for a text of more than one token */
function stopIds({ tokenizer }: SampledBase, stop: string | readonly (string | number)[]): number[] {
  return [stop].flat().map((each) => {
    if (typeof each === 'number') return each;
    const ids = tokenizer.encode(each);
    if (ids.length === 1) return ids[0] as number;
    throw refused(`a stop text must be one token, and ${JSON.stringify(each)} is ${ids.length}`);
  });
}
