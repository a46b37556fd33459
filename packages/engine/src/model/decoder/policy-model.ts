/**
 * A policy's model: a decoder, or an adapter on one, that scores sequences and is trained on the gradient of a loss.
 */

import type { DecoderConfig } from '../../contract/architecture.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer-settings.js';
import { NonFiniteError } from '../../errors.js';
import type { Kernels } from '../../tensor/kernels.js';
import { type Floats, fillOnHost } from '../../tensor/memory.js';
import { AgentDecoders, type AgentSequence } from './agent-decoders.js';
import { Decoder, type DecoderOptions, type SequenceScores, type Upstream } from './decoder.js';
import { clippedStep, gradientNorm, requireFinite, TrainedModelWeights } from './trained-part.js';
import { adapterTensors, initialiseAdapter } from './weights/adapter-tensors.js';
import { type DecoderTensors, decoderTensors, initialise, parameterCount } from './weights/decoder-tensors.js';
import {
  AdapterWeights,
  type BaseWeights,
  type DecoderWeights,
  type Gradient,
  type ModelSource,
  modelWeights,
  TrunkWeights,
  trainedWeights,
  zeroGradient,
} from './weights/model-weights.js';

/**
 * A decoder that is trained, alone or with adapters of agents, an adapter that is trained on a base that is not, or a
 * base that only scores. Memory that only training needs is allocated when training begins, and for the trained weights
 * only. A base that only scores has no trained weights: every member that reads or changes those throws an
 * ArgumentError.
 */
export class PolicyModel extends TrainedModelWeights {
  readonly config: DecoderConfig;
  readonly #decoder: Decoder;
  /** Undefined unless agents have adapters on the decoder. */
  readonly #agents: AgentDecoders | undefined;
  /** The gradient of one call of `accumulate` that follows another call. */
  #callGradient: Gradient | undefined;
  #accumulated = false;

  constructor(kernels: Kernels, source: ModelSource, options: DecoderOptions = {}) {
    super(kernels, modelWeights(kernels, source));
    this.#decoder = new Decoder(kernels, this.weights, options);
    const { trained } = this.weights;
    const shared = { ...options, arena: this.#decoder.arena };
    this.#agents = trained instanceof TrunkWeights ? new AgentDecoders(kernels, trained, shared) : undefined;
    this.config = this.#decoder.config;
  }

  /** The decoder's tensors; for an adapter the tensors of its base. */
  get tensors(): DecoderTensors {
    return this.weights.decoder.tensors;
  }

  /** The decoder's weights; for an adapter the weights of its base. */
  get decoder(): BaseWeights {
    return this.weights.decoder;
  }

  get trained(): Floats {
    return this.values;
  }

  /** The number of trained parameters; for a base that only scores, the number of all its parameters. */
  get parameters(): number {
    return this.weights.trained?.tensors.flat.length ?? parameterCount(this.config);
  }

  /** Draws random first values for the trained weights, except those of agents' adapters. */
  initialise(seed: number, embeddingDeviation?: number): void {
    const trained = trainedWeights(this.weights);
    if (trained instanceof AdapterWeights) this.#initialiseAdapter(trained, seed);
    else
      fillOnHost(this.kernels, trunkOf(trained).tensors.flat, (flat) =>
        initialise(this.config, decoderTensors(this.config, flat), seed, embeddingDeviation),
      );
    this.weightsChanged();
  }

  /** Draws random first values for the adapters of all agents. They change nothing at first. */
  initialiseAdapters(seed: number): void {
    const { trained } = this.weights;
    if (!(trained instanceof TrunkWeights)) return;
    for (const [i, adapter] of [...trained.adapters.values()].entries())
      this.#initialiseAdapter(adapter, adapterSeed(seed, i));
    this.weightsChanged();
  }

  #initialiseAdapter({ settings, tensors }: AdapterWeights, seed: number): void {
    fillOnHost(this.kernels, tensors.flat, (flat) =>
      initialiseAdapter(this.config, settings, adapterTensors(this.config, settings, flat), seed),
    );
  }

  score(sequences: readonly AgentSequence[]): Promise<SequenceScores> {
    return (this.#agents ?? this.#decoder).score(sequences);
  }

  /** Computes the logits after every token: [T, vocabSize]. Adapters of agents have no part in them. */
  logits(tokens: Int32Array): Promise<Float32Array> {
    return this.#decoder.logits(tokens);
  }

  /** Adds a loss's gradient (see `Decoder.accumulate`) and returns the norm of the gradient of this call. */
  async accumulate(
    sequences: readonly AgentSequence[],
    upstream: Upstream,
    entropyUpstream?: Upstream,
  ): Promise<SequenceScores & { readonly gradientNorm: number }> {
    // The norm of this call alone needs a separate buffer once the gradient holds another call's.
    const target = this.#accumulated ? this.#clearedCallGradient() : this.gradientTensors;
    const decoder = this.#agents ?? this.#decoder;
    const scores = await decoder.accumulate(sequences, target, upstream, entropyUpstream);
    const norm = await gradientNorm(this.kernels, [target.flat]);
    if (this.#accumulated) this.kernels.add({ out: this.gradient, x: target.flat, length: this.parameters });
    this.#accumulated = true;
    return { ...scores, gradientNorm: norm };
  }

  /** Clips by the norm of the gradient, updates the trained weights, and clears the gradient (see `clippedStep`). */
  async optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    const result = await clippedStep(this.kernels, [this], settings).catch((error: unknown) => {
      if (error instanceof NonFiniteError) this.#accumulated = false; // the gradient was cleared
      throw error;
    });
    if (result.applied) this.weightsChanged();
    this.#accumulated = false;
    return result;
  }

  /** @throws NonFiniteError if a trained weight is not finite or, with `optimizer`, a number of the optimiser */
  async requireFinite(counts: { readonly optimizer: boolean }): Promise<void> {
    if (this.weights.trained !== undefined) await requireFinite(this.kernels, this, counts);
  }

  /** Clears the gradient; weights and optimiser stay as they are. */
  discardGradient(): void {
    if (this.#accumulated) this.kernels.fill({ x: this.gradient, value: 0 });
    this.#accumulated = false;
  }

  #clearedCallGradient(): Gradient {
    this.#callGradient ??= zeroGradient(this.kernels, this.weights);
    this.kernels.fill({ x: this.#callGradient.flat, value: 0 });
    return this.#callGradient;
  }
}

/**
 * The seed of the first weights of an agent's adapter, from that of all. Seeds lie far apart, so that agents of runs
 * with neighbouring seeds have no first weights in common.
 */
export const adapterSeed = (seed: number, agent: number): number => seed + 1000 * agent;

const trunkOf = (trained: DecoderWeights | TrunkWeights): DecoderWeights =>
  trained instanceof TrunkWeights ? trained.trunk : trained;
