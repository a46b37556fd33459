import type { AdapterSettings, DecoderConfig } from '../../../contract/architecture.js';
import type { ForwardBackwardResult } from '../../../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../../../contract/optimizer-settings.js';
import { BackendError, NonFiniteError } from '../../../core/errors.js';
import type { TrainingSample } from '../../../core/sample.js';
import { objectiveOf } from '../../../loss/objective/objective.js';
import type { ForwardBackwardOptions } from '../../../loss/objective/objective-options.js';
import type { DecoderOptions } from '../../../model/decoder/decoder.js';
import { PolicyModel } from '../../../model/decoder/policy-model.js';
import { Sampler } from '../../../model/decoder/sampling/decoder-sampler.js';
import { adapterTensors, mergeAdapter } from '../../../model/decoder/weights/adapter-tensors.js';
import { decoderTensors, flatCopy } from '../../../model/decoder/weights/decoder-tensors.js';
import { type BaseWeights, type ModelSource, trainedWeights } from '../../../model/decoder/weights/model-weights.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { PolicyState } from '../policy-state.js';

/** The shape of a policy: a decoder of its own, an adapter on a base that was created before, or that base as it is. */
export type PolicyShape = DecoderConfig | { readonly base: number; readonly adapter?: AdapterSettings };

/**
 * The samplers of an engine in order of creation, by the weights that they read: a policy's, or a base's for all
 * adapters on it.
 */
export type Samplers = Map<BaseWeights, Sampler>;

/**
 * A policy as the worker thread holds it: a model that trains, and the sampler that plays what the policy published.
 */
export class ResidentPolicy {
  /** What messages call the policy. */
  readonly name: string;
  readonly shape: PolicyShape;
  readonly source: ModelSource;
  readonly model: PolicyModel;
  nextVersion = 0;
  /** The weights are in part those of a file that could not be read to its end. */
  broken = false;
  /** What the sampler calls the policy: one sampler plays all adapters on a base. */
  readonly #key: string;
  readonly #kernels: Kernels;
  /** Undefined until the policy first plays; one that is only trained needs no cache. */
  #sampler: Sampler | undefined;
  /** The sampler reads the model's own weights, which saves a copy while nothing changes them. */
  #shared = false;
  #version: number | undefined;

  constructor(
    kernels: Kernels,
    { id, name, shape, source }: { id: number; name: string; shape: PolicyShape; source: ModelSource },
    options: DecoderOptions,
  ) {
    this.#kernels = kernels;
    this.#key = String(id);
    this.name = name;
    this.shape = shape;
    this.source = source;
    this.model = new PolicyModel(kernels, source, options);
  }

  forwardBackward(samples: readonly TrainingSample[], options: ForwardBackwardOptions): ForwardBackwardResult {
    const objective = objectiveOf(samples, options);
    const sums = objective.begin(() => this.model.score(objective.samples).logprobs);
    const { entropyGradient } = sums;
    const scores = this.model.accumulate(
      objective.samples,
      (indices, logprobs) => indices.map((index, i) => sums.gradient(index, logprobs[i] as Float32Array)),
      entropyGradient &&
        ((indices, entropies) => indices.map((index, i) => entropyGradient(index, entropies[i] as Float32Array))),
    );
    const { loss, metrics } = sums.result();
    return {
      loss,
      gradientNorm: scores.gradientNorm,
      metrics: { ...metrics, entropy: scores.entropySum / Math.max(1, scores.predicted) },
      tokens: objective.samples.reduce((sum, { tokens }) => sum + tokens.length, 0),
    };
  }

  /** Makes the present weights those that are played. */
  publish(samplers: Samplers): number {
    this.#sampler ??= this.#samplerIn(samplers);
    if (this.#sampler.plays(this.#key))
      throw new BackendError(`policy '${this.name}' is playing; its weights cannot change now`);
    const { model, source } = this;
    const version = this.nextVersion++;
    const frozen = model.weights.trained === undefined;
    const weights = frozen || this.#shared ? undefined : model.trained;
    this.#sampler.load(this.#key, weights, version, 'base' in source ? source.adapter : undefined);
    this.#version = version;
    return version;
  }

  /** All adapters on a base are played by one sampler; a decoder's reads the model's weights until they change. */
  #samplerIn(samplers: Samplers): Sampler {
    this.#shared = !('base' in this.source);
    const weights = this.model.decoder;
    const sampler = samplers.get(weights) ?? new Sampler(this.#kernels, weights);
    samplers.set(weights, sampler);
    return sampler;
  }

  /** To be called before the weights change: a sampler that reads them gets a copy. */
  beforeChange(): void {
    trainedWeights(this.model.weights);
    if (this.#shared) this.#sampler?.separate();
    this.#shared = false;
  }

  /** The sampler that plays the policy, and the policy's name there. @throws BackendError when nothing was published */
  get playing(): { readonly sampler: Sampler; readonly policy: string } {
    if (this.#sampler === undefined) throw new BackendError(`policy '${this.name}' has not been published`);
    return { sampler: this.#sampler, policy: this.#key };
  }

  /** @throws NonFiniteError naming policy and tensor */
  optimStep(settings: OptimStepSettings): OptimStepResult {
    this.beforeChange();
    return naming(`policy '${this.name}'`, () => this.model.optimStep(settings));
  }

  copyFrom(from: ResidentPolicy): void {
    if (JSON.stringify(from.shape) !== JSON.stringify(this.shape))
      throw new BackendError(`the weights of policy '${from.name}' do not fit '${this.name}': their models differ`);
    this.beforeChange();
    this.model.trained.set(from.model.trained);
    this.model.weightsChanged();
    this.model.optimizer.reset();
  }

  /**
   * Copies of the weights, and of the optimiser's state when asked.
   * @throws NonFiniteError naming policy and tensor, rather than that such numbers are saved
   */
  state({ optimizer }: { readonly optimizer: boolean }): PolicyState {
    const { model } = this;
    naming(`policy '${this.name}'`, () => model.requireFinite());
    if (model.weights.trained === undefined) return { weights: flatCopy(model.tensors) };
    const weights = Float32Array.from(model.trained);
    if (!optimizer) return { weights };
    return { weights, optimizer: { ...model.optimizer.copyState(), version: this.#version ?? 0 } };
  }

  /** The weights of a decoder that computes what the policy does: its own, or its base's with the adapter folded in. */
  mergedWeights(): Float32Array {
    const { model, source } = this;
    const weights = flatCopy(model.tensors);
    if (!('base' in source) || source.adapter === undefined) return weights;
    const { config } = model;
    const adapter = adapterTensors(config, source.adapter, model.trained);
    mergeAdapter(config, source.adapter, decoderTensors(config, weights), adapter);
    return weights;
  }
}

/** Does work whose errors about numbers are to name the model. */
export function naming<Result>(model: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof NonFiniteError) throw new NonFiniteError(`${model}: ${error.message}`);
    throw error;
  }
}
