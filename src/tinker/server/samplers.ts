/** Sampling sessions: fixed weights, and the samples of them. */
import { randomInt, randomUUID } from 'node:crypto';
import { DialectError } from '../../base/errors.js';
import { type RandomKey, randomKey } from '../../base/math.js';
import type { EmbeddedBackend, EmbeddedFrozen } from '../../engine/backends.js';
import type { Generation, WeightsSpec } from '../../engine/contract.js';
import type { SampleBody } from './bodies.js';
import type { ServedModel } from './served-model.js';
import { refused, requireIds } from './token-pass.js';

/** The most snapshots of one model, which are only in memory; older ones are closed. */
const MOST_SNAPSHOTS = 8;
/** The most open samplers of saved weights. A closed one is opened again when it is used. */
const MOST_OPEN = 16;

interface Sampler {
  readonly handle: Promise<EmbeddedFrozen>;
  /** The model of a snapshot that is only in memory. */
  readonly model: string | undefined;
  /** The number of samples in progress. The sampler may be closed when it is 0. */
  running: number;
  closed: boolean;
}

/** The weights of a sampling session. */
interface SamplingSession {
  readonly session: string;
  readonly about: SamplerSource;
  readonly key: string;
  /** Undefined for a snapshot, which is only in memory. */
  readonly weights: WeightsSpec | undefined;
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
  readonly #sessions = new Map<string, SamplingSession>();
  /** The least recently used first. */
  readonly #samplers = new Map<string, Sampler>();

  constructor(backend: EmbeddedBackend) {
    this.#backend = backend;
  }

  /** A sampling session on weights in files. */
  open(session: string, key: string, about: SamplerSource, weights: WeightsSpec): string {
    const id = `sampling_${randomUUID()}`;
    this.#sessions.set(id, { session, about, key, weights });
    return id;
  }

  /** A sampling session on the present weights of a model. Later training does not change them. */
  async snapshot({ session, id: model, policy, about }: ServedModel): Promise<string> {
    const id = `sampling_${randomUUID()}`;
    const handle = this.#publish({ type: 'like', policy }, id);
    await handle;
    this.#sessions.set(id, { session, about: { base_model: about.baseModel }, key: id, weights: undefined });
    this.#samplers.set(id, { handle, model, running: 0, closed: false });
    const snapshots = [...this.#samplers].filter(([, sampler]) => sampler.model === model);
    for (const [old] of snapshots.slice(0, -MOST_SNAPSHOTS)) this.#forget(old);
    return id;
  }

  /** Ends the sampling sessions of a session. */
  end(session: string): void {
    for (const [id, each] of this.#sessions) {
      if (each.session !== session) continue;
      this.#sessions.delete(id);
      if (each.weights === undefined) this.#forget(id);
    }
  }

  /** @throws DialectError 404 for a session that does not exist (any more), 400 for a request that cannot be sampled */
  async sample(id: string, body: SampleBody): Promise<SampleOutput> {
    const session = this.#session(id);
    const sampler = this.#samplerOf(session);
    sampler.running++;
    try {
      return await draw(await sampler.handle, body);
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

  #samplerOf({ key, weights }: SamplingSession): Sampler {
    let sampler = this.#samplers.get(key);
    this.#samplers.delete(key);
    if (sampler === undefined) {
      if (weights === undefined) throw new DialectError(404, 'unknown_sampler', 'Sampling session no longer there');
      sampler = { handle: this.#publish(weights, key), model: undefined, running: 0, closed: false };
      sampler.handle.catch(() => this.#samplers.delete(key));
    }
    this.#samplers.set(key, sampler);
    const open = [...this.#samplers].filter(([, { model }]) => model === undefined);
    for (const [old] of open.slice(0, -MOST_OPEN)) this.#forget(old);
    return sampler;
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
    await sampler.handle.then((handle) => handle.close()).catch(() => {}); // the engine may have ended meanwhile
  }
}

async function draw(model: EmbeddedFrozen, body: SampleBody): Promise<SampleOutput> {
  const { num_samples, sampling_params, prompt_logprobs } = body;
  const { max_tokens, seed, key, temperature, top_k, top_p, stop } = sampling_params;
  const prompt = body.prompt.chunks.flatMap(({ tokens }) => tokens);
  const { context, config, tokenizer } = model;
  requireIds(prompt, config, 'the prompt');
  const room = context - prompt.length;
  if (prompt.length < 1 || room < 1)
    throw refused(`a prompt of ${prompt.length} tokens leaves no room in a context of ${context}`);
  const stopTokens = stop === null || stop === undefined ? tokenizer.stopTokens : stopIds(model, stop);
  const request = {
    prompt,
    temperature,
    topP: top_p,
    topK: Math.max(0, top_k),
    maxTokens: Math.min(room, max_tokens ?? room),
    stopTokens,
  };
  const stream = seed ?? randomInt(2 ** 32);
  const keyOf = (i: number): RandomKey => (key && i === 0 ? key : randomKey('tinker', ...(key ?? [stream]), i));
  const [sequences, promptLogprobs] = await Promise.all([
    Promise.all(
      Array.from({ length: num_samples }, async (_, i) => {
        const generation = await model.generate({ ...request, key: keyOf(i) });
        // Log-probs are given at temperature 1, as a training pass computes them.
        if (temperature === 0 || temperature === 1) return generation;
        const { tokens } = generation;
        const logprobs = (await logprobsOf(model, [...prompt, ...tokens])).slice(prompt.length);
        return { ...generation, logprobs };
      }),
    ),
    prompt_logprobs === true ? logprobsOf(model, prompt) : undefined,
  ]);
  return { sequences, promptLogprobs: promptLogprobs && [null, ...promptLogprobs.slice(1)] };
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
function stopIds({ tokenizer }: EmbeddedFrozen, stop: string | readonly (string | number)[]): number[] {
  return [stop].flat().map((each) => {
    if (typeof each === 'number') return each;
    const ids = tokenizer.encode(each);
    if (ids.length === 1) return ids[0] as number;
    throw refused(`a stop text must be one token, and ${JSON.stringify(each)} is ${ids.length}`);
  });
}
