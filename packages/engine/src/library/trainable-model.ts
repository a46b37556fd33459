import type { DecoderConfig } from '../contract/architecture.js';
import type { ForwardBackwardResult } from '../contract/handles.js';
import type { OptimStepResult } from '../contract/optimizer-settings.js';
import type { GenerateRequest, Generation } from '../contract/sampling.js';
import type { EmbeddedPolicy } from '../embedded/embedded-policy.js';
import type { TokenIds } from '../embedded/generate-options.js';
import type { EngineHardware } from '../embedded/thread/engine-thread.js';
import { writingInto } from '../embedded/writing-into.js';
import type { Files } from '../host.js';
import { nextMacrotask } from '../host.js';
import { withoutComparisons } from '../loss/loss-metrics.js';
import { randomKey } from '../math.js';
import type { Tokenizer } from '../nouns.js';
import {
  type Completion,
  type CompletionRequest,
  checkedRequest,
  type GroupRequest,
  type Prompt,
  promptIds,
} from './completion.js';
import { checkedSamples, maskedSequence, type Sample, type ScoredSample } from './training-sample.js';
import { checkedStep, checkedUpdate, type StepOptions, type UpdateOptions } from './update-options.js';

/** A model's surroundings: everything but its handle in the engine. */
interface ModelParts {
  readonly hardware: EngineHardware;
  readonly files: Files;
  /** The seed of generations that have none of their own. */
  readonly seed: number;
  readonly close: () => Promise<void>;
}

/**
 * A language model that samples, scores and learns. `openModel` opens one.
 *
 * Calls may overlap; they take effect in the order in which they are made. A `generate` samples from the weights that
 * all earlier calls leave behind: if they changed since the last `generate`, it first waits until earlier generations
 * of this model have ended. After `dispose` calls are rejected with a BackendError.
 */
export class TrainableModel implements AsyncDisposable {
  /** The model's name in messages. */
  readonly name: string;
  readonly config: DecoderConfig;
  /** Text to token ids and back; `chat` applies the chat template. */
  readonly tokenizer: Tokenizer;
  /** The number of trained parameters; an adapter's number is without its base. */
  readonly parameters: number;
  /** The kernels that compute, their instruction set and their threads. */
  readonly hardware: EngineHardware;
  /** Remarks about how the model was opened. */
  readonly warnings: readonly string[];
  readonly #policy: EmbeddedPolicy;
  readonly #surroundings: ModelParts;
  /** The end of the last call that reads or changes the weights. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #generating = new Set<Promise<unknown>>();
  /** Whether the weights changed since they were last published to the sampler. */
  #changed = true;
  /** The number of seeds that were drawn for `generate`. */
  #seeds = 0;
  #disposed: Promise<void> | undefined;

  /** @internal */
  constructor(policy: EmbeddedPolicy, surroundings: ModelParts) {
    this.#policy = policy;
    this.#surroundings = surroundings;
    this.name = policy.name;
    this.config = policy.config;
    this.tokenizer = policy.tokenizer;
    this.parameters = policy.parameters;
    this.warnings = policy.warnings;
    this.hardware = surroundings.hardware;
  }

  /**
   * Samples one completion of `prompt`, or `n` completions of each of `prompts`: [prompts][n]. They are decoded in one
   * batch, together with the completions of overlapping calls. The completions of one prompt share its prefill.
   * @throws ArgumentError naming the option that is wrong, before anything is sampled; TokenizerError for text that the
   *   tokenizer cannot represent; the signal's reason
   */
  generate(request: CompletionRequest): Promise<Completion>;
  generate(request: GroupRequest): Promise<Completion[][]>;
  async generate(request: CompletionRequest | GroupRequest): Promise<Completion | Completion[][]> {
    const { seed = this.#nextSeed() } = request;
    const { prompts, n, sampling, stopTokens } = checkedRequest(this, request, seed);
    const requests = prompts.flatMap((prompt, p) =>
      Array.from({ length: n }, (_, i): GenerateRequest => {
        return { ...sampling, prompt, stopTokens, key: randomKey('generate', seed, p, i) };
      }),
    );
    const generations = await this.#sample(requests, request.signal);
    const completions = generations.map((generation, i) =>
      this.#completion(requests[i] as GenerateRequest, generation),
    );
    if ('prompt' in request) return completions[0] as Completion;
    return prompts.map((_, p) => completions.slice(p * n, (p + 1) * n));
  }

  /**
   * The log-probs of each sample's written tokens, at its temperature, under the current weights; 0 elsewhere.
   * @returns [samples][T]
   * @throws ArgumentError naming the sample and the field that is wrong
   */
  async logprobs(samples: readonly ScoredSample[]): Promise<Float32Array[]> {
    const checked = checkedSamples(samples, { model: this.name, config: this.config, required: [] });
    return this.#inOrder(() => this.#policy.logprobs(checked));
  }

  /**
   * A sample of supervised learning: the model learns to write `response` after `prompt`. A text is followed by the
   * tokenizer's first stop token; token ids are taken as they stand.
   * @throws TokenizerError for text that the tokenizer cannot represent
   */
  demonstration(prompt: Prompt, response: string | TokenIds): Sample {
    const { tokenizer } = this;
    const written =
      typeof response === 'string' ? [...tokenizer.encode(response), ...tokenizer.stopTokens.slice(0, 1)] : response;
    return maskedSequence(promptIds(tokenizer, prompt), written);
  }

  /**
   * Adds the gradient of a loss to the model's gradient. The weights stay as they are until `optimStep`.
   * @returns The loss; its metrics (`metrics.entropy` in nats); the norm of this call's gradient before clipping.
   *   Metrics that compare with `behaviourLogprobs` are absent if a sample has none.
   * @throws ArgumentError naming the sample, field and position, or the option, that is wrong, before any work
   */
  async forwardBackward(samples: readonly Sample[], options: UpdateOptions): Promise<ForwardBackwardResult> {
    const update = checkedUpdate(samples, options, { model: this.name, config: this.config });
    const result = await this.#inOrder(() => this.#policy.forwardBackward(update.samples, update.options));
    if (samples.every(({ behaviourLogprobs }) => behaviourLogprobs !== undefined)) return result;
    return { ...result, metrics: withoutComparisons(result.metrics) };
  }

  /** Clears the gradient. Weights and optimiser stay as they are. */
  discardGradient(): Promise<void> {
    return this.#inOrder(() => this.#policy.discardGradient());
  }

  /**
   * Clips the gradient, updates the weights with it and clears it.
   * @returns Whether the update was applied. If not, `why` is `not-finite` (the gradient holds a number that is not
   *   finite) or `above-limit` (its norm is above `skipAboveNorm`), and the weights are as before.
   * @throws ArgumentError naming the option that is wrong
   */
  async optimStep(options: StepOptions = {}): Promise<OptimStepResult> {
    const settings = checkedStep(options);
    return this.#inOrder(async () => {
      const result = await this.#policy.optimStep(settings);
      if (result.applied) this.#changed = true;
      return result;
    });
  }

  /** Clears the optimiser's moments and its count of steps, so that a new phase of training starts afresh. */
  resetOptimizer(): Promise<void> {
    return this.#inOrder(() => this.#policy.resetOptimizer());
  }

  /**
   * Writes the weights and the tokenizer in the Hugging Face layout, or an adapter in PEFT's. The directory is made if
   * it is missing. With `merge` an adapter is folded into its base and the whole model is written.
   * @throws CheckpointError if the directory cannot be written; NonFiniteError if a weight is not a finite number
   */
  save(directory: string, { merge = false }: { readonly merge?: boolean | undefined } = {}): Promise<void> {
    return this.#write(directory, (temporary) =>
      merge ? this.#policy.saveMerged(temporary) : this.#policy.save(temporary, { optimizer: false, hash: true }),
    );
  }

  /**
   * Writes the weights as `save` does, and the optimiser's state beside them. If that fails, an earlier state in the
   * directory stays as it was.
   * @throws CheckpointError, NonFiniteError as `save` does
   */
  saveState(directory: string): Promise<void> {
    return this.#write(directory, (temporary) => this.#policy.save(temporary, { optimizer: true, hash: true }));
  }

  /**
   * Reads the files that `saveState` wrote, for a model of the same shape.
   * @throws CheckpointError naming the file, and the tensor or the setting that differs; also if the weights and the
   *   optimiser's state are of different saves, for example because a process ended while it was saving
   */
  loadState(directory: string): Promise<void> {
    return this.#inOrder(async () => {
      this.#changed = true; // also if reading fails half-way
      await this.#policy.load(directory, { optimizer: true });
    });
  }

  /** Gives the model's memory back once its earlier calls have ended. */
  dispose(): Promise<void> {
    this.#disposed ??= this.#inOrder(async () => {
      await this.#idle();
      await this.#surroundings.close();
    });
    return this.#disposed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #nextSeed(): number {
    const [high, low] = randomKey('generation', this.#surroundings.seed, this.#seeds++);
    return (high >>> 11) * 2 ** 32 + low;
  }

  /** Starts all requests at once, in order with other calls, and waits for them out of order. */
  async #sample(requests: readonly GenerateRequest[], signal: AbortSignal | undefined): Promise<Generation[]> {
    const { generations } = await this.#inOrder(async () => {
      await this.#publish();
      const running = Promise.all(requests.map((request) => this.#policy.generate(request, signal)));
      this.#track(running);
      return { generations: running }; // in an object, which the next call does not wait for
    });
    return generations;
  }

  #track(generations: Promise<unknown>): void {
    const ended: Promise<void> = generations.then(
      () => void this.#generating.delete(ended),
      () => void this.#generating.delete(ended),
    );
    this.#generating.add(ended);
  }

  /** Hands the current weights to the sampler, unless it has them. It takes none while it samples. */
  async #publish(): Promise<void> {
    if (!this.#changed) return;
    await this.#idle();
    await this.#policy.publish();
    this.#changed = false;
  }

  /** Waits until no generation runs, and until the engine was sent the last cancellation. */
  async #idle(): Promise<void> {
    await Promise.all(this.#generating);
    await nextMacrotask();
  }

  #completion({ prompt, temperature }: GenerateRequest, generation: Generation): Completion {
    const { tokens, logprobs, finishReason, policyVersion: version } = generation;
    const text = this.tokenizer.decode(finishReason === 'stop' ? tokens.slice(0, -1) : tokens);
    return { prompt, tokens, logprobs, text, finishReason, temperature, version };
  }

  #write(directory: string, write: (temporary: string) => Promise<void>): Promise<void> {
    return this.#inOrder(() => writingInto(this.#surroundings.files, directory, write));
  }

  /** Runs a call after all earlier ones. */
  #inOrder<Result>(call: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(call);
    this.#last = result.catch(() => {}); // its caller hears of it
    return result;
  }
}
