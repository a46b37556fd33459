/**
 * A backend without a model, whose calls take random time: what a policy writes follows from its weights and the call's
 * key, and its weights are the digest of all that it was trained on, in order.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { EMBEDDED_CAPABILITIES } from '../../src/backends/embedded/embedded-backend.js';
import type { Backend } from '../../src/contract/backend.js';
import type { ForwardBackwardResult, Handles, PolicyHandle, Role } from '../../src/contract/handles.js';
import type { OptimStepResult } from '../../src/contract/optimizer-settings.js';
import type { GenerateRequest, Generation } from '../../src/contract/sampling.js';
import type { WeightsSpec } from '../../src/contract/weights-spec.js';
import { BackendError } from '../../src/core/errors.js';
import type { Files } from '../../src/core/files.js';
import { RandomStream } from '../../src/core/random.js';
import type { TrainingSample } from '../../src/core/sample.js';
import type { Tokenizer } from '../../src/core/tokenizer.js';
import { onAbort } from '../../src/platform/on-abort.js';

/** Weights: the digest of their past. `updates` counts the steps of the optimiser. */
interface Weights {
  readonly digest: string;
  readonly updates: number;
}

/** What a simulation may see of a backend. */
export interface Surroundings {
  readonly files: Files;
  /** Waits for a random time. */
  readonly delay: () => Promise<void>;
  /** Receives each sample with which a policy was trained, with the update that it belongs to. */
  readonly trained: (policy: string, update: number, sample: TrainingSample) => void;
}

/** The share of a planner's requests that the backend refuses, by their keys. */
const REFUSED = 0.02;

export class ScriptedBackend implements Backend {
  readonly capabilities = EMBEDDED_CAPABILITIES;
  readonly hardware = { kernels: 'scripted', isa: 'none' };
  readonly #surroundings: Surroundings;
  #disposed = false;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  async open<R extends Role>(weights: WeightsSpec, role: R, name: string): Promise<Handles[R]> {
    await this.#surroundings.delay();
    if (role === 'critic' || !('tokenizer' in weights)) throw new BackendError(`no simulation opens ${role}`);
    const model = new ScriptedModel(name, weights.tokenizer, this.#surroundings, () => this.#disposed);
    return model as unknown as Handles[R]; // a policy can do what the others do, and critics are refused
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    await this.#surroundings.delay();
  }
}

const FILE = 'weights.json';

class ScriptedModel implements Omit<PolicyHandle, 'copyFrom'> {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly context = 256;
  readonly #around: Surroundings;
  readonly #disposed: () => boolean;
  readonly parameters = 1;
  readonly warnings = [];
  #weights: Weights = { digest: '', updates: 0 };
  /** What can be played, the oldest first. */
  #published: Weights[] = [];
  #gradient = createHash('sha256');
  #last: Promise<void> = Promise.resolve();

  constructor(name: string, tokenizer: Tokenizer, surroundings: Surroundings, disposed: () => boolean) {
    this.name = name;
    this.tokenizer = tokenizer;
    this.#around = surroundings;
    this.#disposed = disposed;
  }

  async generate(request: GenerateRequest, signal?: AbortSignal): Promise<Generation> {
    const { prompt, key, maxTokens, stopTokens, version = this.version } = request;
    const weights = this.#published.find(({ updates }) => updates === version);
    if (weights === undefined) throw new BackendError(`version ${version} is not published`);
    await Promise.race([this.#around.delay(), aborted(signal)]);
    if (this.#disposed()) throw new BackendError('the backend is closed');
    const random = new RandomStream(weights.digest, ...key, ...prompt.slice(-4));
    // Only where the team makes one call at a time: what others have written when one fails depends on the time.
    const alone = this.tokenizer.decode(prompt).includes('Plan');
    if (alone && random.chance(REFUSED)) throw new BackendError('the scripted sampler refuses this request');
    const words = Array.from({ length: random.integer(0, maxTokens) }, () => random.integer(97, 122));
    const stopped = words.length < maxTokens;
    const tokens = stopped ? [...words, stopTokens[0] as number] : words;
    return {
      tokens,
      logprobs: tokens.map((token) => -1 - (token % 7) / 8),
      finishReason: stopped ? 'stop' : 'length',
      policyVersion: weights.updates,
    };
  }

  logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    return this.#inOrder(() =>
      samples.map(({ tokens, mask }) => Float32Array.from(tokens, (token, t) => -(mask[t] ?? 0) * (1 + token / 99))),
    );
  }

  get version(): number | undefined {
    return this.#published.at(-1)?.updates;
  }

  publish(keep = 1): Promise<number> {
    return this.#inOrder(() => {
      this.#published = [...this.#published, this.#weights].slice(-keep);
      return this.#weights.updates;
    });
  }

  forwardBackward(samples: readonly TrainingSample[]): Promise<ForwardBackwardResult> {
    return this.#inOrder(() => {
      let tokens = 0;
      for (const sample of samples) {
        this.#around.trained(this.name, this.#weights.updates, sample);
        this.#gradient.update(JSON.stringify([...sample.tokens, ...sample.advantages, ...sample.behaviourLogprobs]));
        tokens += sample.tokens.length;
      }
      const rest = { clipFraction: 0, clipFractionLower: 0, approxKl: 0, maxRatioDeviation: 0, logprobGap: 0 };
      return { loss: tokens, gradientNorm: samples.length / 8, metrics: { ...rest, entropy: 1 }, tokens };
    });
  }

  discardGradient(): Promise<void> {
    return this.#inOrder(() => {
      this.#gradient = createHash('sha256');
    });
  }

  optimStep(): Promise<OptimStepResult> {
    return this.#inOrder(() => {
      const digest = createHash('sha256').update(this.#weights.digest).update(this.#gradient.digest()).digest('hex');
      this.#weights = { digest, updates: this.#weights.updates + 1 };
      this.#gradient = createHash('sha256');
      return { applied: true, norm: Number.parseInt(digest.slice(0, 4), 16) / 2 ** 16 };
    });
  }

  resetOptimizer(): Promise<void> {
    return this.#inOrder(() => {});
  }

  save(directory: string): Promise<void> {
    return this.#inOrder(() => this.#around.files.write(join(directory, FILE), JSON.stringify(this.#weights)));
  }

  load(directory: string): Promise<void> {
    return this.#inOrder(async () => {
      this.#weights = JSON.parse(await this.#around.files.readText(join(directory, FILE))) as Weights;
    });
  }

  /** Does what was submitted, one after the other, each a while after the one before. */
  #inOrder<T>(act: () => T | Promise<T>): Promise<T> {
    const done = this.#last.then(async () => {
      await this.#around.delay();
      if (this.#disposed()) throw new BackendError('the backend is closed');
      return act();
    });
    this.#last = done.then(
      () => {},
      () => {},
    );
    return done;
  }
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted === true) reject(signal.reason);
    else if (signal !== undefined) onAbort(signal, () => reject(signal.reason));
  });
}
