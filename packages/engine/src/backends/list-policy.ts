import { z } from 'zod';
import type { Capabilities } from '../contract/capabilities.js';
import type { ForwardBackwardResult, PolicyHandle } from '../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../contract/optimizer-settings.js';
import { type GenerateRequest, type Generation, isGreedy, responseRoom, scaleOfScores } from '../contract/sampling.js';
import type { WeightsSpec } from '../contract/weights-spec.js';
import { BackendError, CheckpointError, messageOf } from '../errors.js';
import { type Files, joinPath } from '../host.js';
import type { ForwardBackwardOptions } from '../loss/objective/objective-sums.js';
import { RandomStream } from '../math.js';
import type { Tokenizer, TrainingSample } from '../nouns.js';
import { lossGradient } from './forward-backward.js';

const weights = ['random', 'like'] as const;
const FILE = 'values.json';

/**
 * A small policy whose parameters are one list of numbers: a fake for tests, or the first draft of a backend. A
 * subclass gives the first numbers, the log-probs of the next token and their derivatives. This class samples, scores,
 * and learns by gradient descent (`sgd`). Top-p and top-k are refused.
 */
export abstract class ListPolicy implements PolicyHandle {
  /** The capabilities of a backend that holds nothing else. */
  static readonly capabilities: Capabilities = {
    roles: { frozen: weights, policy: weights, critic: [] },
    bases: [],
    precisions: ['float32'],
    agentAdapters: false,
    losses: ['ppo-clip', 'gspo', 'cispo'],
    optimizers: ['sgd'],
    distribution: 'sampled',
    gradientNorms: 'before-update',
    clipsGradients: true,
    keepsVersions: false,
    weights: 'here',
  };

  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly context: number;
  readonly warnings: readonly string[] = [];
  version: number | undefined;
  readonly #files: Files;
  /** [P]; undefined until they are asked for: in the constructor a subclass has no fields yet. */
  #current: readonly number[] | undefined;
  #published: readonly number[] = []; // [P]
  #sum: number[] | undefined; // [P]; undefined is 0

  /** @throws BackendError for weights that are neither random nor those of another policy of this class */
  constructor(name: string, weights: WeightsSpec, files: Files) {
    this.name = name;
    this.#files = files;
    if (weights.type === 'like') {
      const like = this.#alike(weights.policy);
      this.tokenizer = like.tokenizer;
      this.context = like.context;
      this.#current = like.#values;
    } else if (weights.type === 'random') {
      this.tokenizer = weights.tokenizer;
      this.context = weights.config.context;
    } else throw new BackendError(`'${name}': a policy of numbers has no weights of type '${weights.type}'`);
  }

  get #values(): readonly number[] {
    this.#current ??= this.firstValues(this.tokenizer.vocabSize);
    return this.#current;
  }

  set #values(values: readonly number[]) {
    this.#current = values;
  }

  get #gradient(): number[] {
    return this.#sum ?? this.#values.map(() => 0);
  }

  /** The first parameters [P] for a vocabulary of V tokens. Called once, after the constructors. */
  protected abstract firstValues(vocabSize: number): number[];
  /** The log-probs [V] of the token that follows `before` [T]. */
  protected abstract nextLogprobs(values: readonly number[], before: ArrayLike<number>): readonly number[];
  /** The derivatives [P] of the log-prob of `token` after `before` [T]. */
  protected abstract slopes(values: readonly number[], before: ArrayLike<number>, token: number): readonly number[];

  get parameters(): number {
    return this.#values.length;
  }

  async generate(request: GenerateRequest, signal?: AbortSignal): Promise<Generation> {
    if (this.version === undefined) throw new BackendError(`'${this.name}': no weights were published`);
    if (request.topP !== 1 || request.topK !== 0)
      throw new BackendError(`'${this.name}': expected topP 1 and topK 0, got ${request.topP} and ${request.topK}`);
    signal?.throwIfAborted();
    const { prompt, temperature, stopTokens, key } = request;
    const room = responseRoom(request, this.context);
    const random = new RandomStream(...key);
    const tokens: number[] = [];
    const logprobs: number[] = [];
    const stopped = () => stopTokens.includes(tokens.at(-1) ?? -1);
    while (tokens.length < room && !stopped()) {
      const next = this.nextLogprobs(this.#published, [...prompt, ...tokens]);
      const scaled = atTemperature(next, temperature);
      const token = isGreedy(temperature) ? next.indexOf(Math.max(...next)) : drawn(scaled, random.uniform());
      tokens.push(token);
      logprobs.push(scaled[token] as number);
    }
    return { tokens, logprobs, finishReason: stopped() ? 'stop' : 'length', policyVersion: this.version };
  }

  async logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    return samples.map(({ tokens, mask, temperature }) =>
      Float32Array.from(tokens, (token, i) => {
        if (mask[i] !== 1) return 0;
        const next = this.nextLogprobs(this.#values, tokens.subarray(0, i));
        return atTemperature(next, temperature)[token] as number;
      }),
    );
  }

  async forwardBackward(
    given: readonly TrainingSample[],
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult> {
    const { samples, gradients, loss, metrics } = await lossGradient(given, options, (each) => this.logprobs(each));
    const gradient = this.#values.map(() => 0);
    for (const [s, { tokens }] of samples.entries())
      for (const [i, slope] of (gradients[s] as Float32Array).entries()) {
        if (slope === 0) continue;
        const slopes = this.slopes(this.#values, tokens.subarray(0, i), tokens[i] as number);
        for (const [p, each] of slopes.entries()) gradient[p] = (gradient[p] as number) + slope * each;
      }
    this.#sum = this.#gradient.map((sum, p) => sum + (gradient[p] as number));
    const tokens = samples.reduce((sum, sample) => sum + sample.tokens.length, 0);
    return { loss, metrics, gradientNorm: Math.hypot(...gradient), tokens };
  }

  async optimStep({ optimizer, clipNorm, skipAboveNorm }: OptimStepSettings): Promise<OptimStepResult> {
    const gradient = this.#gradient;
    const norm = Math.hypot(...gradient);
    await this.discardGradient();
    if (!Number.isFinite(norm)) return { applied: false, why: 'not-finite', norm };
    if (skipAboveNorm !== undefined && norm > skipAboveNorm) return { applied: false, why: 'above-limit', norm };
    const rate = optimizer.learningRate * (clipNorm > 0 && norm > clipNorm ? clipNorm / norm : 1);
    this.#values = this.#values.map((value, p) => value - rate * (gradient[p] as number));
    return { applied: true, norm };
  }

  async discardGradient(): Promise<void> {
    this.#sum = undefined;
  }

  async publish(): Promise<number> {
    this.#published = this.#values;
    this.version = (this.version ?? -1) + 1;
    return this.version;
  }

  async copyFrom(policy: PolicyHandle): Promise<void> {
    this.#values = this.#alike(policy).#values;
  }

  async save(directory: string): Promise<void> {
    await this.#files.write(joinPath(directory, FILE), JSON.stringify(this.#values));
  }

  async load(directory: string): Promise<void> {
    const path = joinPath(directory, FILE);
    const schema = z.array(z.number()).length(this.#values.length);
    try {
      this.#values = schema.parse(JSON.parse(await this.#files.readText(path)));
    } catch (error) {
      throw new CheckpointError(`${path} cannot be used: ${messageOf(error)}`);
    }
  }

  /** Gradient descent keeps no state. */
  async resetOptimizer(): Promise<void> {}

  #alike(policy: PolicyHandle): ListPolicy {
    if (policy instanceof ListPolicy && policy.constructor === this.constructor) return policy;
    throw new BackendError(`'${this.name}': the policy '${policy.name}' is of another backend`);
  }
}

/** log softmax(logprobs / temperature). */
function atTemperature(logprobs: readonly number[], temperature: number): readonly number[] {
  if (temperature === 1) return logprobs;
  const scale = scaleOfScores(temperature);
  const scaled = logprobs.map((logprob) => scale * logprob);
  const most = Math.max(...scaled);
  const total = most + Math.log(scaled.reduce((sum, each) => sum + Math.exp(each - most), 0));
  return scaled.map((each) => each - total);
}

/** The token at a uniform number from 0 to 1. */
function drawn(logprobs: readonly number[], uniform: number): number {
  let left = uniform;
  const token = logprobs.findIndex((logprob) => {
    left -= Math.exp(logprob);
    return left < 0;
  });
  return token < 0 ? logprobs.length - 1 : token;
}
