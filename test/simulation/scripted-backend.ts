/**
 * A backend without a model, whose calls take random time: what a policy writes follows from its weights and the call's
 * key, and its weights are the digest of all that it was trained on, in order.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type {
  Backend,
  CriticHandle,
  ForwardBackwardResult,
  GenerateRequest,
  Generation,
  Handles,
  OptimStepResult,
  PolicyHandle,
  Role,
  ValueLossResult,
  WeightsSpec,
} from '@drmas/engine/contract';
import { EMBEDDED_CAPABILITIES } from '@drmas/engine/embedded';
import { BackendError } from '@drmas/engine/errors';
import { type Files, onAbort } from '@drmas/engine/host';
import type { ForwardBackwardOptions } from '@drmas/engine/loss';
import { RandomStream } from '@drmas/engine/math';
import type { Tokenizer, TrainingSample, ValueSample } from '@drmas/engine/nouns';

/** Weights: the digest of their past. `updates` counts the steps of the optimiser. */
interface Weights {
  readonly digest: string;
  readonly updates: number;
}

/** The view of a backend that a simulation has. */
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
    const queue = new CallQueue(this.#surroundings, () => this.#disposed);
    if (role === 'critic') {
      const critic = new ScriptedCritic(queue);
      if (weights.type === 'like' && weights.directory !== undefined) await critic.load(weights.directory);
      return critic as CriticHandle as Handles[R];
    }
    if (!('tokenizer' in weights)) throw new BackendError(`no simulation opens ${weights.type}`);
    const model = new ScriptedModel(name, weights.tokenizer, queue);
    return model as PolicyHandle as Handles[R]; // a policy can fill every role
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    await this.#surroundings.delay();
  }
}

const FILE = 'weights.json';

/** Handles submitted work in order, each piece a while after the one before. */
class CallQueue {
  readonly around: Surroundings;
  readonly #disposed: () => boolean;
  #last: Promise<void> = Promise.resolve();

  constructor(around: Surroundings, disposed: () => boolean) {
    this.around = around;
    this.#disposed = disposed;
  }

  requireOpen(): void {
    if (this.#disposed()) throw new BackendError('the backend is closed');
  }

  inOrder<T>(act: () => T | Promise<T>): Promise<T> {
    const done = this.#last.then(async () => {
      await this.around.delay();
      this.requireOpen();
      return act();
    });
    this.#last = done.then(
      () => {},
      () => {},
    );
    return done;
  }
}

/** Weights that hash their training samples. */
class Trained {
  weights: Weights = { digest: '', updates: 0 };
  #gradient = createHash('sha256');

  add(...numbers: readonly ArrayLike<number>[]): void {
    this.#gradient.update(JSON.stringify(numbers.flatMap((each) => Array.from(each))));
  }

  discard(): void {
    this.#gradient = createHash('sha256');
  }

  step(): OptimStepResult {
    const digest = createHash('sha256').update(this.weights.digest).update(this.#gradient.digest()).digest('hex');
    this.weights = { digest, updates: this.weights.updates + 1 };
    this.discard();
    return { applied: true, norm: fractionOf(digest) };
  }

  async save(files: Files, directory: string): Promise<void> {
    await files.write(join(directory, FILE), JSON.stringify(this.weights));
  }

  async load(files: Files, directory: string): Promise<void> {
    this.weights = JSON.parse(await files.readText(join(directory, FILE))) as Weights;
  }
}

/** A number between 0 and 1 that follows from a digest. */
const fractionOf = (digest: string) => Number.parseInt(digest.slice(0, 4) || '0', 16) / 2 ** 16;

class ScriptedCritic implements CriticHandle {
  readonly #queue: CallQueue;
  readonly #trained = new Trained();

  constructor(queue: CallQueue) {
    this.#queue = queue;
  }

  values(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    return this.#queue.inOrder(() => {
      const level = fractionOf(this.#trained.weights.digest);
      return samples.map(({ tokens, mask }) => Float32Array.from(tokens, (token, t) => (mask[t] ?? 0) * level * token));
    });
  }

  forwardBackward(samples: readonly ValueSample[]): Promise<ValueLossResult> {
    return this.#queue.inOrder(() => {
      for (const { tokens, oldValues, returns } of samples) this.#trained.add(tokens, oldValues, returns);
      return { loss: samples.length, clipFraction: 0 };
    });
  }

  optimStep(): Promise<OptimStepResult> {
    return this.#queue.inOrder(() => this.#trained.step());
  }

  save(directory: string): Promise<void> {
    return this.#queue.inOrder(() => this.#trained.save(this.#queue.around.files, directory));
  }

  load(directory: string): Promise<void> {
    return this.#queue.inOrder(() => this.#trained.load(this.#queue.around.files, directory));
  }
}

class ScriptedModel implements PolicyHandle {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly context = 256;
  readonly parameters = 1;
  readonly warnings = [];
  readonly #queue: CallQueue;
  readonly #trained = new Trained();
  /** The versions that can be played, the oldest first. */
  #published: Weights[] = [];

  constructor(name: string, tokenizer: Tokenizer, queue: CallQueue) {
    this.name = name;
    this.tokenizer = tokenizer;
    this.#queue = queue;
  }

  async generate(request: GenerateRequest, signal?: AbortSignal): Promise<Generation> {
    const { prompt, key, maxTokens, stopTokens, version = this.version } = request;
    const weights = this.#published.find(({ updates }) => updates === version);
    if (weights === undefined) throw new BackendError(`version ${version} is not published`);
    await Promise.race([this.#queue.around.delay(), aborted(signal)]);
    this.#queue.requireOpen();
    const random = new RandomStream(weights.digest, ...key, ...prompt.slice(-4));
    // Only if the team makes one call at a time: else the time decides what other calls have written before a failure.
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
    return this.#queue.inOrder(() =>
      samples.map(({ tokens, mask }) => Float32Array.from(tokens, (token, t) => -(mask[t] ?? 0) * (1 + token / 99))),
    );
  }

  get version(): number | undefined {
    return this.#published.at(-1)?.updates;
  }

  publish(keep = 1): Promise<number> {
    return this.#queue.inOrder(() => {
      this.#published = [...this.#published, this.#trained.weights].slice(-keep);
      return this.#trained.weights.updates;
    });
  }

  forwardBackward(
    samples: readonly TrainingSample[],
    { loss }: Pick<ForwardBackwardOptions, 'loss'>,
  ): Promise<ForwardBackwardResult> {
    return this.#queue.inOrder(() => {
      let tokens = 0;
      for (const sample of samples) {
        if (loss.type !== 'demonstrations')
          this.#queue.around.trained(this.name, this.#trained.weights.updates, sample);
        this.#trained.add(sample.tokens, sample.advantages, sample.behaviourLogprobs);
        tokens += sample.tokens.length;
      }
      const ratios = { clipFraction: 0, clipFractionLower: 0, approxKl: 0, maxRatioDeviation: 0, logprobGap: 0 };
      const metrics = { tokens, units: tokens, ...ratios, entropy: 1 };
      return { loss: tokens, gradientNorm: samples.length / 8, metrics, tokens };
    });
  }

  discardGradient(): Promise<void> {
    return this.#queue.inOrder(() => this.#trained.discard());
  }

  optimStep(): Promise<OptimStepResult> {
    return this.#queue.inOrder(() => this.#trained.step());
  }

  /** A new phase, whose updates count from 0. */
  resetOptimizer(): Promise<void> {
    return this.#queue.inOrder(() => {
      this.#trained.weights = { ...this.#trained.weights, updates: 0 };
    });
  }

  copyFrom(policy: PolicyHandle): Promise<void> {
    return this.#queue.inOrder(() => {
      this.#trained.weights = (policy as ScriptedModel).#trained.weights;
    });
  }

  save(directory: string): Promise<void> {
    return this.#queue.inOrder(() => this.#trained.save(this.#queue.around.files, directory));
  }

  load(directory: string): Promise<void> {
    return this.#queue.inOrder(() => this.#trained.load(this.#queue.around.files, directory));
  }
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted === true) reject(signal.reason);
    else if (signal !== undefined) onAbort(signal, () => reject(signal.reason));
  });
}
