/** A policy that one backend trains and a separate engine samples. */
import type { LimitFunction } from 'p-limit';
import { seedOf, temperatureOf } from '../backends/agent-reply.js';
import { checkedAnswer } from '../backends/answered-tokens.js';
import type { ForwardBackwardResult, PolicyHandle, StateOptions } from '../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../contract/optimizer-settings.js';
import { type GenerateRequest, type Generation, type OnTokens, responseRoom } from '../contract/sampling.js';
import { BackendError } from '../errors.js';
import { onAbort } from '../host.js';
import type { ForwardBackwardOptions } from '../loss/objective/objective-sums.js';
import type { Tokenizer, TrainingSample } from '../nouns.js';
import { type PushedWeights, type SamplingEngine, StaleWeights } from './sampling-engine.js';

export interface EngineConnection {
  readonly engine: SamplingEngine;
  /** Requests in flight. */
  readonly limit: LimitFunction;
  /** Ends running requests. */
  readonly closed: AbortSignal;
  /** Receives a message if the engine had lost weights. */
  readonly warn: (message: string) => void;
  /** Writes a policy's present weights into a new directory, under a unique name. */
  write(policy: PolicyHandle, version: number): Promise<PushedWeights>;
  remove(weights: PushedWeights): Promise<void>;
}

interface Published {
  readonly version: number;
  readonly weights: PushedWeights;
}

/** The longest wait for the engine at the end of a run, in case it is gone. */
const RELEASE_MS = 3000;

/** How often weights that the engine has lost are sent again for one request. */
const PUSHES = 2;

export class SampledPolicy implements PolicyHandle {
  /** The policy's handle in the backend that trains it. */
  readonly trained: PolicyHandle;
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly context: number;
  readonly vocabSize: number;
  readonly #connection: EngineConnection;
  /** The versions that can be sampled, the oldest first. */
  #published: readonly Published[] = [];
  readonly #again = new Map<string, Promise<void>>();

  constructor(trained: PolicyHandle, connection: EngineConnection) {
    this.trained = trained;
    this.name = trained.name;
    this.tokenizer = trained.tokenizer;
    this.context = trained.context;
    this.vocabSize = trained.vocabSize ?? trained.tokenizer.vocabSize;
    this.#connection = connection;
  }

  get parameters(): number | undefined {
    return this.trained.parameters;
  }

  get warnings(): readonly string[] {
    return this.trained.warnings;
  }

  get version(): number | undefined {
    return this.#published.at(-1)?.version;
  }

  logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    return this.trained.logprobs(samples);
  }

  forwardBackward(samples: readonly TrainingSample[], options: ForwardBackwardOptions): Promise<ForwardBackwardResult> {
    return this.trained.forwardBackward(samples, options);
  }

  discardGradient(): Promise<void> {
    return this.trained.discardGradient();
  }

  optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.trained.optimStep(settings);
  }

  resetOptimizer(): Promise<void> {
    return this.trained.resetOptimizer();
  }

  copyFrom(policy: PolicyHandle): Promise<void> {
    return this.trained.copyFrom(trainedOf(policy));
  }

  save(directory: string, options?: StateOptions): Promise<void> {
    return this.trained.save(directory, options);
  }

  load(directory: string, options: StateOptions): Promise<void> {
    return this.trained.load(directory, options);
  }

  /** Sends the present weights to the engine, under the trainer's version number. */
  async publish(keep = 1): Promise<number> {
    const { engine, write } = this.#connection;
    const version = await this.trained.publish();
    const weights = await write(this.trained, version);
    await engine.load(weights);
    const all = [...this.#published, { version, weights }];
    this.#published = all.slice(-keep);
    for (const { weights: old } of all.slice(0, -keep)) await this.#drop(old);
    return version;
  }

  async #drop(weights: PushedWeights): Promise<void> {
    await this.#connection.engine.unload(weights);
    await this.#connection.remove(weights);
  }

  /** Unloads all versions from the engine, if it replies in time. */
  async release(): Promise<void> {
    const { engine } = this.#connection;
    const given = this.#published.map(({ weights }) => engine.unload(weights, AbortSignal.timeout(RELEASE_MS)));
    await Promise.allSettled(given);
  }

  /**
   * @throws BackendError when the prompt does not fit, the version is not kept, the engine answers with other weights
   *   although it was given these again, or its tokens or log-probs cannot be this model's (`checkedAnswer`)
   */
  async generate(request: GenerateRequest, signal?: AbortSignal, onTokens?: OnTokens): Promise<Generation> {
    signal?.throwIfAborted();
    const { engine, closed, limit } = this.#connection;
    if (request.prompt.length === 0) throw new BackendError('expected at least 1 token in a prompt, got 0');
    const engineRequest = {
      ...request,
      temperature: temperatureOf(request),
      maxTokens: responseRoom(request, this.context),
      seed: seedOf(request),
    };
    const ended = new AbortController();
    const listening = [closed, ...(signal === undefined ? [] : [signal])].map((each) =>
      onAbort(each, () => ended.abort(each.reason)),
    );
    if (closed.aborted) ended.abort(closed.reason);
    const { version, answer } = await limit(() => this.#sample(engineRequest, request.version, ended.signal)).finally(
      () => {
        for (const stopListening of listening) stopListening();
      },
    );
    const { tokens, logprobs, stopped } = checkedAnswer(answer, request, this, { ...engine.source, policy: this.name });
    onTokens?.(tokens);
    return { tokens, logprobs, finishReason: stopped ? 'stop' : answer.finishReason, policyVersion: version };
  }

  async #sample(request: Parameters<SamplingEngine['generate']>[0], wanted: number | undefined, signal: AbortSignal) {
    const { engine, warn } = this.#connection;
    for (let pushes = 0; ; pushes++) {
      signal.throwIfAborted();
      const { version, weights } = this.#played(wanted);
      try {
        return { version, answer: await engine.generate(request, weights, signal) };
      } catch (error) {
        if (!(error instanceof StaleWeights) || pushes === PUSHES) throw error;
        const again =
          this.#again.get(weights.name) ??
          engine
            .load(weights)
            .then(() => warn(`version ${version} of '${this.name}' was pushed again: ${error.message}`));
        this.#again.set(weights.name, again);
        await again.finally(() => this.#again.delete(weights.name));
      }
    }
  }

  #played(version = this.version): Published {
    if (version === undefined) throw new BackendError(`policy '${this.name}' has not been published`);
    const playing = this.#published.find((each) => each.version === version);
    if (playing === undefined) throw new BackendError(`version ${version} of policy '${this.name}' is not kept`);
    return playing;
  }
}

export const trainedOf = (policy: PolicyHandle): PolicyHandle =>
  policy instanceof SampledPolicy ? policy.trained : policy;
