/** The engine as the worker thread holds it: policies that train, samplers that play, all on one set of kernels. */
import type { AdapterSettings, DecoderConfig } from '../../../contract/architecture.js';
import type { ForwardBackwardResult } from '../../../contract/backend.js';
import type { OptimStepResult, OptimStepSettings } from '../../../contract/optimizer.js';
import type { GenerateRequest } from '../../../contract/sampling.js';
import { BackendError } from '../../../core/errors.js';
import { objectiveOf } from '../../../loss/objective/objective.js';
import type { ForwardBackwardOptions } from '../../../loss/objective/objective-options.js';
import type { DecoderOptions } from '../../../model/decoder/decoder.js';
import { PolicyModel } from '../../../model/decoder/policy-model.js';
import { Sampler, type SamplerResult } from '../../../model/decoder/sampling/decoder-sampler.js';
import { adapterTensors, mergeAdapter } from '../../../model/decoder/weights/adapter-tensors.js';
import { decoderTensors, flatCopy, initialise } from '../../../model/decoder/weights/decoder-tensors.js';
import {
  type BaseWeights,
  baseWeights,
  DecoderWeights,
  type ModelSource,
  trainedWeights,
} from '../../../model/decoder/weights/model-weights.js';
import type { MatrixKind } from '../../../model/decoder/weights/packed-decoder.js';
import type { TensorPiece } from '../../../model/formats/tensor.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { PolicyState } from '../policy-state.js';
import { Arrivals, type ArrivingOptimizer, type Owner } from './arrivals.js';
import { type CriticState, ResidentCritics } from './resident-critics.js';
import { type SampleBatch, unpackSamples } from './sample-batch.js';
import { weightsHash } from './weights-hash.js';

/** What a policy is: a decoder of its own, an adapter on a base that was created before, or that base as it is, which nothing trains. */
export type PolicyShape = DecoderConfig | { readonly base: string; readonly adapter?: AdapterSettings };

/** How random first weights are drawn. */
export interface RandomStart {
  readonly seed: number;
  /** Of a whole decoder; an adapter has no embedding. */
  readonly embeddingDeviation?: number | undefined;
}

interface Published {
  readonly version: number;
  /** Undefined while the model has them, and once the sampler does. */
  weights: Float32Array | undefined;
  /** The sampler has them. */
  synced: boolean;
}

interface Resident {
  readonly shape: PolicyShape;
  readonly source: ModelSource;
  readonly model: PolicyModel;
  /** Made when the policy first plays; one that is only trained needs no cache. */
  sampler: Sampler | undefined;
  published: Published | undefined;
  /** The sampler reads the model's own weights, which saves a copy while nothing changes them. */
  shared: boolean;
  nextVersion: number;
  /** Its weights are in part those of a file that could not be read to its end. */
  broken: boolean;
}

export class Engine {
  readonly #kernels: Kernels;
  readonly #options: DecoderOptions;
  readonly #policies = new Map<string, Resident>();
  /** Models that adapters adapt, or that play as they are: once each, whatever number of policies. Nothing changes them. */
  readonly #bases = new Map<string, BaseWeights>();
  /** In order of creation, for ticks: by the weights that they read, of a policy's own or of a base. */
  readonly #samplers = new Map<BaseWeights, Sampler>();

  readonly #critics: ResidentCritics;
  readonly #arrivals = new Arrivals();

  constructor(kernels: Kernels, options: DecoderOptions = {}) {
    this.#kernels = kernels;
    this.#options = options;
    this.#critics = new ResidentCritics(kernels, options);
  }

  /** A model that nothing trains, of random weights from a seed, or of zeros in float32 or bfloat16, to be filled. */
  createBase(name: string, config: DecoderConfig, first: RandomStart | MatrixKind): void {
    if (typeof first === 'string') {
      this.#bases.set(name, baseWeights(this.#kernels, config, first));
      return;
    }
    const base = new DecoderWeights(this.#kernels, config);
    initialise(config, base.tensors, first.seed, first.embeddingDeviation);
    this.#bases.set(name, base);
  }

  /** Random first weights from a seed, or zeros, to be filled. Returns the number of trained parameters; of a base as it is, of all. */
  createPolicy(name: string, shape: PolicyShape, first?: RandomStart): number {
    if (this.#policies.has(name)) throw new BackendError(`policy '${name}' exists already`);
    const source = 'base' in shape ? { base: this.#base(shape.base), adapter: shape.adapter } : shape;
    const model = new PolicyModel(this.#kernels, source, this.#options);
    this.#policies.set(name, {
      shape,
      source,
      model,
      sampler: undefined,
      published: undefined,
      shared: false,
      nextVersion: 0,
      broken: false,
    });
    if (first !== undefined) model.initialise(first.seed, first.embeddingDeviation);
    return model.parameters;
  }

  /** Forgets a policy whose weights could not be read. */
  dropPolicy(name: string): void {
    this.#policies.delete(name);
  }

  /** After every token: [T, vocabSize]. */
  logits(name: string, tokens: Int32Array): Float32Array {
    return this.#resident(name).model.logits(tokens);
  }

  forward(name: string, batch: SampleBatch): Float32Array[] {
    return this.#resident(name).model.score(unpackSamples(batch)).logprobs;
  }

  forwardBackward(name: string, batch: SampleBatch, options: ForwardBackwardOptions): ForwardBackwardResult {
    const objective = objectiveOf(unpackSamples(batch), options);
    const { model } = this.#resident(name);
    const sums = objective.begin(() => model.score(objective.samples).logprobs);
    const { entropyGradient } = sums;
    const scores = model.accumulate(
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

  optimStep(name: string, settings: OptimStepSettings): OptimStepResult {
    const resident = this.#resident(name);
    this.#beforeChange(resident);
    return resident.model.optimStep(settings);
  }

  publish(name: string): number {
    const resident = this.#resident(name);
    const version = resident.nextVersion++;
    resident.published = { version, weights: undefined, synced: false };
    return version;
  }

  sync(name: string): number {
    const resident = this.#resident(name);
    const { published, model, source } = resident;
    if (published === undefined) throw new BackendError(`policy '${name}' has not been published`);
    resident.sampler ??= this.#samplerOf(resident, published);
    const { sampler, shared } = resident;
    if (sampler.plays(name)) throw new BackendError(`policy '${name}' is playing; its weights cannot change now`);
    const frozen = model.weights.trained === undefined;
    const weights = frozen || shared || published.synced ? undefined : (published.weights ?? model.trained);
    sampler.load(name, weights, published.version, 'base' in source ? source.adapter : undefined);
    published.weights = undefined;
    published.synced = true;
    return published.version;
  }

  copyWeights(from: string, to: string): void {
    const resident = this.#resident(to);
    const { model, shape } = resident;
    const source = this.#resident(from);
    if (JSON.stringify(source.shape) !== JSON.stringify(shape))
      throw new BackendError(`the weights of policy '${from}' do not fit '${to}': their models differ`);
    this.#beforeChange(resident);
    model.trained.set(source.model.trained);
    model.weightsChanged();
    model.optimizer.reset();
  }

  /** Whoever plays the weights, or is about to, keeps them as they were: copies are made here and not before. */
  #beforeChange(resident: Resident): void {
    const { published, model, sampler } = resident;
    trainedWeights(model.weights);
    if (published?.synced === false) published.weights ??= Float32Array.from(model.trained);
    if (resident.shared) sampler?.separate();
    resident.shared = false;
  }

  resetOptimizer(name: string): void {
    this.#resident(name).model.optimizer.reset();
  }

  exportState(name: string, optimizer: boolean): PolicyState {
    const { model, published } = this.#resident(name);
    if (model.weights.trained === undefined) return { weights: flatCopy(model.tensors) };
    const weights = Float32Array.from(model.trained);
    if (!optimizer) return { weights };
    return { weights, optimizer: { ...model.optimizer.copyState(), version: published?.version ?? 0 } };
  }

  /** All adapters on a base are played by one sampler; a decoder's own reads the model's weights until they change. */
  #samplerOf(resident: Resident, published: Published): Sampler {
    const { source, model } = resident;
    resident.shared = !('base' in source) && published.weights === undefined;
    const weights =
      'base' in source || resident.shared ? model.decoder : new DecoderWeights(this.#kernels, model.config);
    const sampler = this.#samplers.get(weights) ?? new Sampler(this.#kernels, weights);
    this.#samplers.set(weights, sampler);
    return sampler;
  }

  /** A base's weights as they are. */
  exportBase(name: string): Float32Array {
    return flatCopy(this.#base(name).tensors);
  }

  /** The weights of a decoder that computes what the policy does: its own, or its base's with the adapter folded in. */
  exportMerged(name: string): Float32Array {
    const { model, source } = this.#resident(name);
    const weights = flatCopy(model.tensors);
    if (!('base' in source) || source.adapter === undefined) return weights;
    const { config } = model;
    const own = adapterTensors(config, source.adapter, model.trained);
    mergeAdapter(config, source.adapter, decoderTensors(config, weights), own);
    return weights;
  }

  /** `weightsHash` of a base. */
  baseHash(name: string): string {
    return weightsHash(this.#base(name).tensors);
  }

  /** Begins to fill weights, and what an optimiser remembers, with what files hold. */
  beginState(owner: Owner, state?: ArrivingOptimizer): void {
    const { kind, name } = owner;
    if (kind === 'base') {
      const base = this.#base(name);
      this.#arrivals.begin(owner, { decoder: base, adapter: undefined, trained: undefined }, undefined);
      return;
    }
    if (kind === 'critic') {
      const { weights, optimizers } = this.#critics.model(name);
      this.#arrivals.begin(owner, weights, { own: optimizers.trunk, state });
      return;
    }
    const resident = this.#existing(name);
    this.#beforeChange(resident);
    if (state !== undefined) resident.nextVersion = state.version;
    const { weights, optimizer } = resident.model;
    this.#arrivals.begin(owner, weights, { own: optimizer, state });
  }

  fillState(owner: Owner, piece: TensorPiece): void {
    this.#arrivals.take(owner, piece);
  }

  /** With a part of it alone a base is forgotten, and a policy refuses all but another state. */
  endState(owner: Owner, complete: boolean): void {
    this.#arrivals.end(owner);
    const { kind, name } = owner;
    if (kind === 'policy') this.#existing(name).broken = !complete;
    else if (kind === 'base' && !complete) this.#bases.delete(name);
  }

  /** A critic of a policy's shape and present weights. */
  createCritic(name: string, policy: string): void {
    const { source, model } = this.#resident(policy);
    this.#critics.create(name, source, model.trained);
  }

  criticValues(name: string, batch: SampleBatch): Float32Array[] {
    return this.#critics.values(name, batch);
  }

  criticForwardBackward(...args: Parameters<ResidentCritics['forwardBackward']>) {
    return this.#critics.forwardBackward(...args);
  }

  criticOptimStep(name: string, settings: OptimStepSettings): OptimStepResult {
    return this.#critics.optimStep(name, settings);
  }

  exportCritic(name: string): CriticState {
    return this.#critics.export(name);
  }

  importHead(name: string, head: CriticState['head']): void {
    this.#critics.importHead(name, head);
  }

  submit(id: number, request: GenerateRequest): void {
    const { sampler } = this.#resident(request.policy);
    if (sampler === undefined) throw new BackendError(`policy '${request.policy}' has not been published`);
    sampler.submit({ ...request, id });
  }

  cancel(id: number): void {
    for (const sampler of this.#samplers.values()) sampler.cancel(id);
  }

  get busy(): boolean {
    return [...this.#samplers.values()].some((sampler) => sampler.busy);
  }

  /** One token for every running request of every policy. */
  tick(): SamplerResult[] {
    return [...this.#samplers.values()].flatMap((sampler) => (sampler.busy ? sampler.step() : []));
  }

  #base(name: string): BaseWeights {
    const base = this.#bases.get(name);
    if (base === undefined) throw new BackendError(`there is no base '${name}'`);
    return base;
  }

  #resident(name: string): Resident {
    const resident = this.#existing(name);
    if (resident.broken)
      throw new BackendError(`policy '${name}' has a part of a checkpoint that could not be read; load it, or another`);
    return resident;
  }

  #existing(name: string): Resident {
    const resident = this.#policies.get(name);
    if (resident === undefined) throw new BackendError(`there is no policy '${name}'`);
    return resident;
  }
}
