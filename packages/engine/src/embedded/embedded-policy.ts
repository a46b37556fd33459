import type { DecoderConfig } from '../contract/architecture.js';
import type { ForwardBackwardResult, ModelHandle, PolicyHandle, StateOptions } from '../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../contract/optimizer-settings.js';
import type { GenerateRequest, Generation, OnTokens } from '../contract/sampling.js';
import { BackendError } from '../errors.js';
import type { LossSpec } from '../loss/loss-spec.js';
import type { ForwardBackwardOptions } from '../loss/objective/objective-sums.js';
import type { Tokenizer, TrainingSample } from '../nouns.js';
import { type EmbeddedModel, type EngineServices, fillState, openState, writeState } from './embedded-model.js';
import { writePolicy } from './state-files.js';
import type { ExportOptions } from './stored-state.js';
import { lossForThread } from './thread/loss-modules.js';
import type { TokenLosses } from './thread/resident-policy.js';
import { packSamples, transferables } from './thread/sample-batch.js';

/** A model of the embedded engine that samples and scores. */
export class EmbeddedFrozen implements ModelHandle {
  readonly model: EmbeddedModel;
  readonly name: string;
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  readonly context: number;
  readonly vocabSize: number;
  readonly parameters: number;
  readonly warnings: readonly string[];
  protected readonly services: EngineServices;
  #version: number | undefined;

  constructor(services: EngineServices, model: EmbeddedModel) {
    this.services = services;
    this.model = model;
    this.name = model.name;
    this.config = model.config;
    this.tokenizer = model.tokenizer;
    this.context = model.config.context;
    this.vocabSize = model.config.vocabSize;
    this.parameters = model.parameters;
    this.warnings = model.warnings ?? [];
  }

  isIn(services: EngineServices): boolean {
    return this.services === services;
  }

  /** Logits after every token of one sequence: [T, vocabSize]. */
  logits(tokens: Int32Array): Promise<Float32Array> {
    return this.services.thread.call('logits', this.model.id, tokens);
  }

  logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    const batch = packSamples(samples);
    return this.services.thread.callWith(transferables(batch), 'logprobs', this.model.id, batch);
  }

  get version(): number | undefined {
    return this.#version;
  }

  async publish(keep?: number): Promise<number> {
    this.#version = await this.services.thread.call('publish', this.model.id, keep);
    return this.#version;
  }

  /** @throws BackendError also if the logits are not finite, since no token can be drawn from them */
  async generate(request: GenerateRequest, signal?: AbortSignal, onTokens?: OnTokens): Promise<Generation> {
    const generation = await this.services.queue.generate(this.model.id, request, signal, onTokens);
    const broken = generation.logprobs.findIndex((logprob) => !Number.isFinite(logprob));
    if (broken < 0) return generation;
    throw new BackendError(
      `policy '${this.name}': the log-prob of token ${broken} is ${generation.logprobs[broken]}: the weights are so large that the logits overflow`,
    );
  }

  async save(directory: string, options: ExportOptions = { optimizer: false }): Promise<void> {
    const state = await this.services.thread.call('exportState', this.model.id, options);
    await writeState(this.services, this.model, directory, state);
  }

  /** Gives back the model's memory. @throws ArgumentError while it plays */
  close(): Promise<void> {
    return this.services.thread.call('dropPolicy', this.model.id);
  }

  /** Writes a whole model that computes the same: an adapter is folded into its base. */
  async saveMerged(directory: string): Promise<void> {
    const { id, config, tokenizer } = this.model;
    const state = { weights: await this.services.thread.call('exportMerged', id) };
    await writePolicy(this.services.files, directory, { config, tokenizer, state });
  }
}

/** A model of the embedded engine that trains. */
export class EmbeddedPolicy extends EmbeddedFrozen implements PolicyHandle {
  async forwardBackward(
    samples: readonly TrainingSample[],
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult> {
    const batch = packSamples(samples);
    const sent = { ...options, loss: lossForThread(options.loss) };
    return this.services.thread.callWith(transferables(batch), 'forwardBackward', this.model.id, batch, sent);
  }

  /** Adds the gradient of the plain sum of a loss over the written tokens, and gives these tokens' log-probs. */
  addTokenLosses(samples: readonly TrainingSample[], spec: LossSpec): Promise<TokenLosses> {
    const batch = packSamples(samples);
    return this.services.thread.callWith(transferables(batch), 'addTokenLosses', this.model.id, batch, spec);
  }

  discardGradient(): Promise<void> {
    return this.services.thread.call('discardGradient', this.model.id);
  }

  optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.services.thread.call('optimStep', this.model.id, settings);
  }

  resetOptimizer(): Promise<void> {
    return this.services.thread.call('resetOptimizer', this.model.id);
  }

  async copyFrom(policy: PolicyHandle): Promise<void> {
    await this.services.thread.call('copyWeights', modelOf(this.services, policy).id, this.model.id);
  }

  async load(directory: string, options: StateOptions): Promise<void> {
    const state = await openState(this.services, this.model, directory, options);
    await fillState(this.services, { kind: 'policy', id: this.model.id }, state);
  }
}

/** The model behind a handle. @throws BackendError when the handle belongs to another engine */
export function modelOf(services: EngineServices, policy: PolicyHandle): EmbeddedModel {
  if (policy instanceof EmbeddedPolicy && policy.isIn(services)) return policy.model;
  throw new BackendError(`policy '${policy.name}' is one of another backend`);
}
