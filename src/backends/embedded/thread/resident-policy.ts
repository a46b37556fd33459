import type { AdapterSettings, DecoderConfig, Precision } from '../../../contract/architecture.js';
import type { ForwardBackwardResult } from '../../../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../../../contract/optimizer-settings.js';
import { BackendError, NonFiniteError } from '../../../core/errors.js';
import type { TrainingSample } from '../../../core/sample.js';
import { type LossSpec, lossKind } from '../../../loss/loss-spec.js';
import type { ForwardBackwardOptions } from '../../../loss/objective/objective-options.js';
import type { DecoderOptions } from '../../../model/decoder/decoder.js';
import { PolicyModel } from '../../../model/decoder/policy-model.js';
import { Sampler } from '../../../model/decoder/sampling/decoder-sampler.js';
import { adapterTensors, mergeAdapter } from '../../../model/decoder/weights/adapter-tensors.js';
import { decoderTensors, flatCopy } from '../../../model/decoder/weights/decoder-tensors.js';
import {
  type BaseWeights,
  DecoderWeights,
  type ModelSource,
  trainedWeights,
} from '../../../model/decoder/weights/model-weights.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { type OwnMemory, ownMemory } from '../../../tensor/own-memory.js';
import { forwardBackward } from '../../forward-backward.js';
import type { PolicyState } from '../policy-state.js';

/** The shape of a policy: a decoder of its own, an adapter on a base that was created before, or that base as it is. */
export type PolicyShape = DecoderConfig | { readonly base: number; readonly adapter?: AdapterSettings };

/**
 * The samplers of an engine by their precision and, in order of creation, by the weights that they read: a policy's, or
 * a base's for all adapters on it.
 */
export type Samplers = Readonly<Record<Precision, Map<BaseWeights, Sampler>>>;

/** A version of a policy that can be played. */
interface Published {
  readonly sampler: Sampler;
  /** What the sampler calls it. */
  readonly key: string;
  version: number;
}

/** What a sum of token losses came to. */
export interface TokenLosses {
  readonly loss: number;
  /** Of the written tokens, 0 elsewhere: one [T] row a sample. */
  readonly logprobs: Float32Array[];
}

/**
 * A policy as the worker thread holds it: a model that trains, and the sampler that plays what the policy published.
 */
export class ResidentPolicy {
  /** What messages call the policy. */
  readonly name: string;
  readonly shape: PolicyShape;
  readonly source: ModelSource;
  readonly precision: Precision;
  readonly model: PolicyModel;
  nextVersion = 0;
  /** The weights are in part those of a file that could not be read to its end. */
  broken = false;
  readonly #id: string;
  readonly #kernels: Kernels;
  /** What ends with the policy: its weights, the trainer's memory, samplers that nobody else plays with. */
  readonly #memory: OwnMemory;
  /** What was published and can be played, the oldest first. One that is only trained has none, and needs no cache. */
  readonly #published: Published[] = [];
  /** The first of them reads the model's own weights, which saves a copy while nothing changes them. */
  #sharing: Published | undefined;

  constructor(
    kernels: Kernels,
    {
      id,
      name,
      shape,
      source,
      precision,
    }: { id: number; name: string; shape: PolicyShape; source: ModelSource; precision: Precision },
    options: DecoderOptions,
  ) {
    this.#kernels = kernels;
    this.#memory = ownMemory(kernels);
    this.#id = String(id);
    this.name = name;
    this.shape = shape;
    this.source = source;
    this.precision = precision;
    try {
      this.model = new PolicyModel(this.#memory.kernels, source, { ...options, precision });
    } catch (error) {
      this.#memory.free(); // a device that has too little for all of it got a part
      throw error;
    }
  }

  forwardBackward(samples: readonly TrainingSample[], options: ForwardBackwardOptions): Promise<ForwardBackwardResult> {
    return forwardBackward(this.model, samples, options);
  }

  /**
   * Adds the gradient of the sum of a loss over the written tokens, divided by nothing, and gives their log-probs. Only
   * losses of single tokens are such sums.
   */
  async addTokenLosses(samples: readonly TrainingSample[], spec: LossSpec): Promise<TokenLosses> {
    const { token } = lossKind(spec);
    const outcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
    let loss = 0;
    const { logprobs } = await this.model.accumulate(samples, (indices, rows) =>
      indices.map((index, i) => {
        const { mask, advantages, behaviourLogprobs } = samples[index] as TrainingSample;
        return (rows[i] as Float32Array).map((logprob, t) => {
          const advantage = advantages[t] as number;
          if (mask[t] === 0 || advantage === 0) return 0;
          token(Math.exp(logprob - (behaviourLogprobs[t] as number)), advantage, logprob, outcome);
          loss += outcome.loss;
          return outcome.gradient;
        });
      }),
    );
    return { loss, logprobs };
  }

  /**
   * Makes the present weights those that are played.
   * @param keep The versions that can be played from now on, this one among them
   */
  publish(samplers: Samplers, keep = 1): number {
    const place = this.#published.length < keep ? this.#place(samplers) : (this.#published.shift() as Published);
    if (place.sampler.plays(place.key))
      throw new BackendError(`policy '${this.name}' is playing; its weights cannot change now`);
    const { model, source } = this;
    const version = this.nextVersion++;
    const frozen = model.weights.trained === undefined;
    const weights = frozen || place === this.#sharing ? undefined : model.trained;
    const adapter = 'base' in source ? source.adapter : undefined;
    place.sampler.load(place.key, weights, version, adapter, this.#memory.kernels);
    place.version = version;
    this.#published.push(place);
    return version;
  }

  /** Ends the policy and gives its memory back. @throws ArgumentError while it plays */
  end(samplers: Samplers): void {
    for (const { sampler, key } of this.#published) sampler.unload(key);
    if (!('base' in this.source)) for (const { sampler } of this.#published) forget(samplers[this.precision], sampler);
    this.#published.length = 0;
    this.#memory.free();
  }

  /**
   * Where one more version can be played. All versions of all adapters on a base have one sampler. A decoder's first
   * one reads the model's weights until they change, further ones have copies.
   */
  #place(samplers: Samplers): Published {
    const number = this.#published.length;
    const whole = !('base' in this.source);
    // A sampler of a base outlives its policies.
    const kernels = whole ? this.#memory.kernels : this.#kernels;
    const weights = whole && number > 0 ? new DecoderWeights(kernels, this.model.config) : this.model.decoder;
    const ofPrecision = samplers[this.precision];
    const sampler = ofPrecision.get(weights) ?? new Sampler(kernels, weights, this.precision);
    ofPrecision.set(weights, sampler);
    const place = { sampler, key: number === 0 ? this.#id : `${this.#id}.${number}`, version: -1 };
    if (whole && number === 0) this.#sharing = place;
    return place;
  }

  /** To be called before the weights change: a sampler that reads them gets a copy. */
  beforeChange(): void {
    trainedWeights(this.model.weights);
    this.#sharing?.sampler.separate();
    this.#sharing = undefined;
  }

  /** What plays a version, the last one where none is named. @throws BackendError when it is not kept */
  playing(version?: number): Published {
    const last = this.#published.at(-1);
    if (last === undefined) throw new BackendError(`policy '${this.name}' has not been published`);
    const named = version === undefined ? last : this.#published.find((each) => each.version === version);
    if (named === undefined) throw new BackendError(`version ${version} of policy '${this.name}' is not kept`);
    return named;
  }

  /** @throws NonFiniteError naming policy and tensor */
  async optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    this.beforeChange();
    return naming(`policy '${this.name}'`, () => this.model.optimStep(settings));
  }

  copyFrom(from: ResidentPolicy): void {
    if (JSON.stringify(from.shape) !== JSON.stringify(this.shape))
      throw new BackendError(`the weights of policy '${from.name}' do not fit '${this.name}': their models differ`);
    this.beforeChange();
    this.#kernels.copy(this.model.trained, from.model.trained);
    this.model.weightsChanged();
    this.model.optimizer.reset();
  }

  /**
   * Copies of the weights, and of the optimiser's state when asked.
   * @throws NonFiniteError naming policy and tensor, rather than that such numbers are saved
   */
  async state({ optimizer }: { readonly optimizer: boolean }): Promise<PolicyState> {
    const { model } = this;
    await naming(`policy '${this.name}'`, () => model.requireFinite({ optimizer }));
    if (model.weights.trained === undefined) return { weights: await flatCopy(this.#kernels, model.tensors) };
    const [weights] = await this.#kernels.read([model.trained]);
    if (!optimizer) return { weights };
    const remembered = await model.optimizer.copyState();
    return { weights, optimizer: { ...remembered, version: this.#published.at(-1)?.version ?? 0 } };
  }

  /** The weights of a decoder that computes what the policy does: its own, or its base's with the adapter folded in. */
  async mergedWeights(): Promise<Float32Array> {
    const { model, source } = this;
    const weights = await flatCopy(this.#kernels, model.tensors);
    if (!('base' in source) || source.adapter === undefined) return weights;
    const { config } = model;
    const [trained] = await this.#kernels.read([model.trained]);
    const adapter = adapterTensors(config, source.adapter, trained);
    mergeAdapter(config, source.adapter, decoderTensors(config, weights), adapter);
    return weights;
  }
}

function forget(samplers: Map<BaseWeights, Sampler>, ended: Sampler): void {
  for (const [weights, sampler] of samplers) if (sampler === ended) samplers.delete(weights);
}

/** Does work whose errors about numbers are to name the model. */
export async function naming<Result>(model: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NonFiniteError) throw new NonFiniteError(`${model}: ${error.message}`);
    throw error;
  }
}
