/** The engine in the worker thread: models that train and samplers that generate, all on one set of kernels. */

import { forwardBackward } from '../../backends/forward-backward.js';
import { type DecoderConfig, PRECISIONS, type Precision } from '../../contract/architecture.js';
import type { ForwardBackwardResult, ValueLossResult, ValueLossSettings } from '../../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer-settings.js';
import type { GenerateRequest } from '../../contract/sampling.js';
import { BackendError } from '../../errors.js';
import type { AnyLoss } from '../../loss/loss-spec.js';
import type { ForwardBackwardOptions } from '../../loss/objective/objective-sums.js';
import type { DecoderOptions } from '../../model/decoder/decoder.js';
import type { DecoderSampler, SamplerResult } from '../../model/decoder/sampling/decoder-sampler.js';
import {
  type BaseKind,
  type DecoderTensors,
  decoderTensors,
  eachTensor,
  flatCopy,
  initialise,
} from '../../model/decoder/weights/decoder-tensors.js';
import {
  type BaseWeights,
  BlockWeights,
  baseWeights,
  DecoderWeights,
  requireBlocks,
} from '../../model/decoder/weights/model-weights.js';
import type { BlockPiece, FilePiece, TensorPiece } from '../../model/formats/tensor.js';
import type { ValueSample } from '../../nouns.js';
import { Arena } from '../../tensor/arena.js';
import { widen } from '../../tensor/bfloat16.js';
import type { DeviceCounts } from '../../tensor/device-counts.js';
import type { Kernels } from '../../tensor/kernels.js';
import { fillOnHost, isInBfloat16 } from '../../tensor/memory.js';
import { type OwnMemory, ownMemory } from '../../tensor/own-memory.js';
import type { CriticState, ExportOptions, PolicyState } from '../stored-state.js';
import { type IncomingOptimizer, IncomingStates, type StateOwner } from './incoming-states.js';
import { type ImportModule, LossModules } from './loss-modules.js';
import { ResidentCritic } from './resident-critic.js';
import {
  type EngineSamplers,
  type PolicyShape,
  present,
  ResidentPolicy,
  type TokenLosses,
  tokenLosses,
  unbroken,
} from './resident-policy.js';
import { type SampleBatch, unpackSamples } from './sample-batch.js';
import { Transferred } from './transferred.js';

export interface RandomStart {
  readonly seed: number;
  /** Standard deviation of a whole decoder's embedding; an adapter has none. */
  readonly embeddingDeviation?: number | undefined;
  readonly adaptersSeed?: number | undefined;
}

/** The first weights of a policy; adapters of agents on a trunk that is loaded next have a seed alone. */
type PolicyStart = RandomStart | { readonly adaptersSeed: number } | { readonly like: number };

export interface EngineFacilities {
  /** Imports modules of users; an engine without it refuses their losses. */
  readonly importModule?: ImportModule | undefined;
  /** An engine without it computes no hashes of weights, which saved adapters need. */
  readonly startHash?: StartHash | undefined;
}

/** Models are numbered by the other thread; names are for messages. */
export class Engine {
  readonly #kernels: Kernels;
  readonly #options: DecoderOptions;
  readonly #policies = new Map<number, ResidentPolicy>();
  /**
   * Models that adapters adapt, or that sample without an adapter. They never change. Policies with equal bases share
   * one.
   */
  readonly #bases = new Map<number, { readonly weights: BaseWeights; readonly memory: OwnMemory }>();
  readonly #critics = new Map<number, ResidentCritic>();
  /** Ticks go through them in this order. */
  readonly #samplers: EngineSamplers = { float32: new Map(), bfloat16: new Map(), int8: new Map() };
  readonly #incoming: IncomingStates;

  readonly #losses: LossModules;

  readonly #startHash: StartHash | undefined;

  constructor(kernels: Kernels, options: DecoderOptions = {}, { importModule, startHash }: EngineFacilities = {}) {
    this.#kernels = kernels;
    this.#startHash = startHash;
    this.#losses = new LossModules(importModule);
    // Calls run one after another, so all models compute in one arena. A device's memory is freed with its policy.
    this.#options = kernels.adapter === undefined ? { ...options, arena: new Arena(kernels) } : options;
    this.#incoming = new IncomingStates(kernels);
  }

  /**
   * A model that is not trained: with random weights from a seed, or zeros to load into. Returns whether its matrices
   * come in blocks.
   */
  createBase(id: number, config: DecoderConfig, first: RandomStart | BaseKind): boolean {
    const memory = ownMemory(this.#kernels);
    try {
      const weights = firstBase(memory.kernels, config, first);
      this.#bases.set(id, { weights, memory });
      return weights instanceof BlockWeights;
    } catch (error) {
      memory.free(); // a device that has too little for all of it got a part
      throw error;
    }
  }

  /**
   * Creates a policy. Its first weights are random from a seed, copied from another policy of the same shape, or zeros
   * to load into. Returns the number of trained parameters, or of all parameters for a base without an adapter.
   * @throws BackendError for a policy in int8 whose base is not in blocks
   */
  createPolicy(
    id: number,
    { name, shape, precision }: { readonly name: string; readonly shape: PolicyShape; readonly precision: Precision },
    first?: PolicyStart,
  ): number {
    if ('trunk' in shape && this.#kernels.adapter !== undefined)
      throw new BackendError(`'${name}' has adapters of agents, which are trained on the processor only`);
    const source = 'base' in shape ? { base: this.#base(shape.base), adapter: shape.adapter } : shape;
    requireBlocks(name, precision, 'base' in source && source.base instanceof BlockWeights);
    const about = { id, name, shape, source, precision };
    const policy = new ResidentPolicy(this.#kernels, about, this.#options);
    if (first !== undefined && 'like' in first) policy.copyFrom(this.#policy(first.like));
    else if (first !== undefined) {
      if ('seed' in first) policy.model.initialise(first.seed, first.embeddingDeviation);
      if (first.adaptersSeed !== undefined) policy.model.initialiseAdapters(first.adaptersSeed);
    }
    this.#policies.set(id, policy);
    return policy.model.parameters;
  }

  /** Forgets a policy and gives its memory back. @throws ArgumentError while it plays */
  dropPolicy(id: number): void {
    this.#policyAsItIs(id).end(this.#samplers);
    this.#policies.delete(id);
  }

  /** Logits after every token: [T, vocabSize]. */
  async logits(id: number, tokens: Int32Array): Promise<Transferred<Float32Array>> {
    return new Transferred(await this.#policy(id).model.logits(tokens));
  }

  async logprobs(id: number, batch: SampleBatch): Promise<Float32Array[]> {
    return (await this.#policy(id).model.score(unpackSamples(batch))).logprobs;
  }

  /** @throws RecipeError, ArgumentError when the module of a user's loss cannot be imported, or lacks the loss */
  async forwardBackward(
    id: number,
    batch: SampleBatch,
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult> {
    const { model } = this.#policy(id);
    return forwardBackward(model, unpackSamples(batch), { ...options, loss: await this.#losses.open(options.loss) });
  }

  addTokenLosses(id: number, batch: SampleBatch, spec: AnyLoss): Promise<TokenLosses> {
    const { model } = this.#policy(id);
    return tokenLosses(unpackSamples(batch), spec, (samples, upstream) => model.accumulate(samples, upstream));
  }

  discardGradient(id: number): void {
    this.#policy(id).model.discardGradient();
  }

  optimStep(id: number, settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#policy(id).optimStep(settings);
  }

  publish(id: number, keep?: number): number {
    return this.#policy(id).publish(this.#samplers, keep);
  }

  copyWeights(from: number, to: number): void {
    this.#policy(to).copyFrom(this.#policy(from));
  }

  resetOptimizer(id: number): void {
    this.#policy(id).model.optimizer.reset();
  }

  async exportState(id: number, options: ExportOptions): Promise<Transferred<PolicyState>> {
    const state = await this.#policy(id).state(options);
    if (options.hash !== true || this.#startHash === undefined) return new Transferred(state);
    return new Transferred({ ...state, hash: flatHash(state.weights, this.#startHash) });
  }

  async exportMerged(id: number): Promise<Transferred<Float32Array>> {
    return new Transferred(await this.#policy(id).mergedWeights());
  }

  async exportBase(id: number): Promise<Transferred<Float32Array>> {
    return new Transferred(await flatCopy(this.#kernels, this.#base(id).tensors));
  }

  /** `weightsHash` of a base. @throws BackendError if this engine computes no hashes */
  async baseHash(id: number): Promise<string> {
    return this.#hashOf(this.#base(id).tensors);
  }

  /** `weightsHash` of a policy's decoder. @throws BackendError if this engine computes no hashes */
  async trunkHash(id: number): Promise<string> {
    return this.#hashOf(this.#policy(id).model.tensors);
  }

  #hashOf(tensors: DecoderTensors): Promise<string> {
    if (this.#startHash === undefined) throw new BackendError('this engine computes no hashes of weights');
    return weightsHash(this.#kernels, tensors, this.#startHash);
  }

  beginState(owner: StateOwner, state?: IncomingOptimizer): void {
    const { kind, id } = owner;
    if (kind === 'base') {
      const base = this.#base(id);
      this.#incoming.begin(owner, { decoder: base, adapter: undefined, trained: undefined }, undefined);
      return;
    }
    if (kind === 'critic') {
      const { weights, optimizers } = this.#critic(id).model;
      this.#incoming.begin(owner, weights, { optimizer: optimizers.trunk, state });
      return;
    }
    const policy = this.#policyAsItIs(id);
    policy.beforeChange();
    if (state !== undefined) policy.nextVersion = state.version;
    const { weights, optimizer } = policy.model;
    this.#incoming.begin(owner, weights, { optimizer, state });
  }

  /** @throws BackendError for a piece that is still in its file: this engine reads none */
  fillState(owner: StateOwner, piece: TensorPiece | BlockPiece | FilePiece): void {
    if (!('bytes' in piece)) throw new BackendError(`tensor "${piece.name}": expected its numbers`);
    this.#incoming.take(owner, piece);
  }

  /** Ends the loading. If it is incomplete, a base is removed, and a policy accepts only another state. */
  endState(owner: StateOwner, complete: boolean): void {
    this.#incoming.end(owner);
    const { kind, id } = owner;
    if (kind === 'policy') this.#policyAsItIs(id).broken = !complete;
    else if (kind === 'base' && !complete) {
      this.#bases.get(id)?.memory.free();
      this.#bases.delete(id);
    }
  }

  createCritic(id: number, policy: number): void {
    const like = this.#policy(policy);
    if ('trunk' in like.shape)
      throw new BackendError(`policy '${like.name}' has adapters of agents, so it has no critic`);
    this.#critics.set(id, new ResidentCritic(this.#kernels, like, this.#options));
  }

  criticValues(id: number, batch: SampleBatch): Promise<Float32Array[]> {
    return this.#critic(id).model.values(unpackSamples(batch));
  }

  criticForwardBackward(
    id: number,
    samples: readonly ValueSample[],
    settings: ValueLossSettings,
  ): Promise<ValueLossResult> {
    return this.#critic(id).forwardBackward(samples, settings);
  }

  criticOptimStep(id: number, settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#critic(id).optimStep(settings);
  }

  async exportCritic(id: number): Promise<Transferred<CriticState>> {
    return new Transferred(await this.#critic(id).state());
  }

  /** The trunk arrives in pieces (`beginState`). */
  importHead(id: number, head: CriticState['head']): void {
    this.#critic(id).setHead(head);
  }

  /** @param onToken Receives each token in the tick that draws it */
  submit(id: number, policy: number, request: GenerateRequest, onToken?: (token: number) => void): void {
    const resident = this.#policy(policy);
    const version = resident.playing(request.version);
    const key = resident.keyFor(version, request.agent);
    version.sampler.submit({ ...request, policy: key, id, onToken });
  }

  cancel(id: number): void {
    for (const sampler of this.#allSamplers()) sampler.cancel(id);
  }

  /** The memory of a GPU, and the work that it received; undefined on the processor. */
  deviceCounts(): DeviceCounts | undefined {
    return this.#kernels.counts;
  }

  get busy(): boolean {
    for (const sampler of this.#allSamplers()) if (sampler.busy) return true;
    return false;
  }

  /** One token for every running request of every policy. */
  async tick(): Promise<SamplerResult[]> {
    const results: SamplerResult[] = [];
    for (const sampler of this.#allSamplers()) if (sampler.busy) results.push(...(await sampler.step()));
    return results;
  }

  *#allSamplers(): Generator<DecoderSampler> {
    for (const precision of PRECISIONS) yield* this.#samplers[precision].values();
  }

  #base(id: number): BaseWeights {
    return present(this.#bases.get(id), 'base', id).weights;
  }

  #critic(id: number): ResidentCritic {
    return present(this.#critics.get(id), 'critic', id);
  }

  #policy(id: number): ResidentPolicy {
    return unbroken(this.#policyAsItIs(id));
  }

  #policyAsItIs(id: number): ResidentPolicy {
    return present(this.#policies.get(id), 'policy', id);
  }
}

function firstBase(kernels: Kernels, config: DecoderConfig, first: RandomStart | BaseKind): BaseWeights {
  if (typeof first === 'string' || 'layers' in first) return baseWeights(kernels, config, first);
  const base = new DecoderWeights(kernels, config);
  fillOnHost(kernels, base.tensors.flat, (flat) =>
    initialise(config, decoderTensors(config, flat), first.seed, first.embeddingDeviation),
  );
  return base;
}

/** Numbers that are hashed at a time; a hash takes less than 2 GiB. */
const MOST_AT_ONCE = 2 ** 20;

/** Starts a SHA-256. */
type StartHash = () => { update(bytes: Uint8Array): unknown; digest(form: 'hex'): string };

/**
 * SHA-256 of a decoder's weights as float32, in the engine's order: the same whatever files and number types hold them.
 */
async function weightsHash(kernels: Kernels, tensors: DecoderTensors, startHash: StartHash): Promise<string> {
  const hash = startHash();
  const widened = new Float32Array(MOST_AT_ONCE);
  for (const tensor of eachTensor(tensors)) {
    for (let at = 0; at < tensor.length; at += MOST_AT_ONCE) {
      const part = tensor.subarray(at, at + MOST_AT_ONCE);
      if (isInBfloat16(part)) widen(widened, (await kernels.read([part]))[0]);
      else widened.set((await kernels.read([part]))[0]);
      hash.update(new Uint8Array(widened.buffer, 0, 4 * part.length));
    }
  }
  return hash.digest('hex');
}

/** SHA-256 of numbers in memory. */
function flatHash(numbers: Float32Array, startHash: StartHash): string {
  const hash = startHash();
  for (let at = 0; at < numbers.length; at += MOST_AT_ONCE) {
    const part = numbers.subarray(at, at + MOST_AT_ONCE);
    hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
  return hash.digest('hex');
}
