import type { AdapterSettings, DecoderConfig, Precision } from '../../contract/architecture.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer-settings.js';
import { BackendError, NonFiniteError } from '../../errors.js';
import { type AnyLoss, lossKind } from '../../loss/loss-spec.js';
import type { DecoderOptions, Upstream } from '../../model/decoder/decoder.js';
import { PolicyModel } from '../../model/decoder/policy-model.js';
import { DecoderSampler } from '../../model/decoder/sampling/decoder-sampler.js';
import { adapterTensors, mergeAdapter } from '../../model/decoder/weights/adapter-tensors.js';
import { decoderTensors, flatCopy } from '../../model/decoder/weights/decoder-tensors.js';
import {
  type BaseWeights,
  DecoderWeights,
  type ModelSource,
  type TrunkShape,
  TrunkWeights,
  trainedWeights,
} from '../../model/decoder/weights/model-weights.js';
import type { TrainingSample } from '../../nouns.js';
import type { Arena } from '../../tensor/arena.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats } from '../../tensor/memory.js';
import { type OwnMemory, ownMemory } from '../../tensor/own-memory.js';
import type { PolicyState } from '../stored-state.js';
import type { StateOwner } from './incoming-states.js';

/**
 * The shape of a policy: a whole decoder, alone or with adapters of agents, an adapter on a base that was created
 * before, or that base alone.
 */
export type PolicyShape = DecoderConfig | TrunkShape | { readonly base: number; readonly adapter?: AdapterSettings };

/**
 * The samplers of an engine by precision, then by the weights that they read: a policy's weights, or a base's weights
 * for all adapters on it. They are in order of creation.
 */
export type EngineSamplers = Readonly<Record<Precision, Map<BaseWeights, DecoderSampler>>>;

interface PublishedVersion {
  readonly sampler: DecoderSampler;
  readonly key: string;
  version: number;
}

export interface TokenLosses {
  readonly loss: number;
  /** Of the written tokens, 0 elsewhere: one [T] row a sample. */
  readonly logprobs: Float32Array[];
}

/** A policy in the worker thread: a model that trains, and the samplers of its published versions. */
export class ResidentPolicy {
  readonly name: string;
  readonly shape: PolicyShape;
  readonly source: ModelSource;
  readonly precision: Precision;
  readonly model: PolicyModel;
  nextVersion = 0;
  /** Loading failed half-way: only some of the weights come from the file. */
  broken = false;
  readonly #id: string;
  readonly #kernels: Kernels;
  readonly #arena: Arena | undefined;
  /** The memory that is freed with the policy: its weights, the trainer's buffers, samplers that only it uses. */
  readonly #memory: OwnMemory;
  /** The published versions, the oldest first. A policy that only trains publishes none and needs no cache. */
  readonly #published: PublishedVersion[] = [];
  /** The places of versions that are kept no longer, for later versions. */
  readonly #spare: PublishedVersion[] = [];
  /** The first version reads the model's own weights until they change, which saves a copy. */
  #sharing: PublishedVersion | undefined;

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
    this.#arena = options.arena;
    this.#memory = ownMemory(kernels);
    this.#id = String(id);
    this.name = name;
    this.shape = shape;
    this.source = source;
    this.precision = precision;
    try {
      this.model = new PolicyModel(this.#memory.kernels, source, { ...options, precision });
    } catch (error) {
      this.#memory.free(); // a device with too little memory allocated only a part
      throw error;
    }
  }

  /**
   * Publishes the present weights: requests are sampled from them.
   * @param keep The number of versions that can be sampled from now on, this one included
   * @throws BackendError while the oldest version plays whose place the new one would take; all versions then stay
   */
  publish(samplers: EngineSamplers, keep = 1): number {
    const place = this.#freePlace(samplers, keep);
    const { model, source } = this;
    const version = this.nextVersion++;
    const load = (key: string, weights: Floats | undefined, adapter?: AdapterSettings) =>
      place.sampler.load(key, weights, version, adapter, this.#memory.kernels);
    const { trained } = model.weights;
    if (trained instanceof TrunkWeights) {
      load(place.key, trained.trunk.tensors.flat);
      for (const [agent, { tensors, settings }] of trained.adapters)
        load(agentKey(place, agent), tensors.flat, settings);
    } else {
      const weights = trained === undefined || place === this.#sharing ? undefined : model.trained;
      load(place.key, weights, 'base' in source ? source.adapter : undefined);
    }
    place.version = version;
    this.#published.push(place);
    this.#spare.push(...this.#published.splice(0, this.#published.length - Math.max(1, keep)));
    return version;
  }

  /** The place of the next version: the oldest one's, a spare one, or a new one. */
  #freePlace(samplers: EngineSamplers, keep: number): PublishedVersion {
    const plays = (place: PublishedVersion) => this.#keys(place).some((key) => place.sampler.plays(key));
    const [oldest] = this.#published;
    if (oldest !== undefined && this.#published.length >= keep) {
      if (plays(oldest)) throw new BackendError(`policy '${this.name}' is playing; its weights cannot change now`);
      this.#published.shift();
      return oldest;
    }
    const spare = this.#spare.findIndex((place) => !plays(place));
    return spare < 0 ? this.#place(samplers) : (this.#spare.splice(spare, 1)[0] as PublishedVersion);
  }

  /** The names of a version in its sampler: its own, and one for each agent with an adapter. */
  #keys(place: PublishedVersion): string[] {
    const { trained } = this.model.weights;
    const agents = trained instanceof TrunkWeights ? [...trained.adapters.keys()] : [];
    return [place.key, ...agents.map((agent) => agentKey(place, agent))];
  }

  /**
   * The name of a version in its sampler for a request of an agent.
   * @throws BackendError if agents have adapters and this is none of them
   */
  keyFor(place: PublishedVersion, agent: string | undefined): string {
    const { trained } = this.model.weights;
    if (!(trained instanceof TrunkWeights)) return place.key;
    if (agent !== undefined && trained.adapters.has(agent)) return agentKey(place, agent);
    const names = [...trained.adapters.keys()].join(', ');
    throw new BackendError(`policy '${this.name}' has adapters of ${names}; the request is of ${agent ?? 'no agent'}`);
  }

  /** Ends the policy and frees its memory. @throws ArgumentError while it is sampled */
  end(samplers: EngineSamplers): void {
    const places = [...this.#published, ...this.#spare];
    for (const place of places) for (const key of this.#keys(place)) place.sampler.unload(key);
    if (!('base' in this.source)) for (const { sampler } of places) forget(samplers[this.precision], sampler);
    this.#published.length = 0;
    this.#spare.length = 0;
    this.#memory.free();
  }

  /**
   * A place in a sampler for one more version. All versions of all adapters on a base share one sampler. A whole
   * decoder's first version reads the model's weights until they change; further versions have copies, and so have all
   * versions of a trunk with adapters of agents.
   */
  #place(samplers: EngineSamplers): PublishedVersion {
    const number = this.#published.length + this.#spare.length;
    const whole = !('base' in this.source);
    // A sampler of a base outlives its policies.
    const kernels = whole ? this.#memory.kernels : this.#kernels;
    const copied = whole && (number > 0 || 'trunk' in this.source);
    const weights = copied ? new DecoderWeights(kernels, this.model.config) : this.model.decoder;
    const ofPrecision = samplers[this.precision];
    const sampler = ofPrecision.get(weights) ?? new DecoderSampler(kernels, weights, this.precision, this.#arena);
    ofPrecision.set(weights, sampler);
    const place = { sampler, key: number === 0 ? this.#id : `${this.#id}.${number}`, version: -1 };
    if (whole && !copied) this.#sharing = place;
    return place;
  }

  /** Call this before the weights change. The sampler that reads them gets a copy. */
  beforeChange(): void {
    trainedWeights(this.model.weights);
    this.#sharing?.sampler.separate();
    this.#sharing = undefined;
  }

  /** The sampler of a version, by default of the last one. @throws BackendError when it is not kept */
  playing(version?: number): PublishedVersion {
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
    this.#kernels.copy({ to: this.model.trained, from: from.model.trained });
    this.model.weightsChanged();
    this.model.optimizer.reset();
  }

  /**
   * Copies of the weights and, if `optimizer` is true, of the optimiser's state.
   * @throws NonFiniteError naming policy and tensor, so that such numbers are not saved
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

  /** The weights of a whole decoder with the same results: the policy's own, or the base's with the adapter merged. */
  async mergedWeights(): Promise<Float32Array> {
    const { model, source } = this;
    if ('trunk' in source)
      throw new BackendError(`policy '${this.name}' is one model for each agent: merge each alone`);
    const weights = await flatCopy(this.#kernels, model.tensors);
    if (!('base' in source) || source.adapter === undefined) return weights;
    const { config } = model;
    const [trained] = await this.#kernels.read([model.trained]);
    const adapter = adapterTensors(config, source.adapter, trained);
    mergeAdapter(config, source.adapter, decoderTensors(config, weights), adapter);
    return weights;
  }
}

/**
 * Sums a loss over the written tokens, without a divisor, and returns their log-probs. The loss must be a sum over
 * single tokens.
 * @param accumulate Adds the gradient to a model's
 */
export async function tokenLosses(
  samples: readonly TrainingSample[],
  loss: AnyLoss,
  accumulate: (samples: readonly TrainingSample[], upstream: Upstream) => Promise<Pick<TokenLosses, 'logprobs'>>,
): Promise<TokenLosses> {
  const { token } = lossKind(loss);
  const outcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
  let sum = 0;
  const { logprobs } = await accumulate(samples, (indices, rows) =>
    indices.map((index, i) => {
      const { mask, advantages, behaviourLogprobs } = samples[index] as TrainingSample;
      return (rows[i] as Float32Array).map((logprob, t) => {
        const advantage = advantages[t] as number;
        if (mask[t] === 0 || advantage === 0) return 0;
        const logRatio = logprob - (behaviourLogprobs[t] as number);
        token({ ratio: Math.exp(logRatio), logRatio, advantage, logprob }, outcome);
        sum += outcome.loss;
        return outcome.gradient;
      });
    }),
  );
  return { loss: sum, logprobs };
}

/** The name of an agent's adapter of a version. No policy's own name has a space. */
const agentKey = ({ key }: PublishedVersion, agent: string) => `${key} ${agent}`;

function forget(samplers: Map<BaseWeights, DecoderSampler>, ended: DecoderSampler): void {
  for (const [weights, sampler] of samplers) if (sampler === ended) samplers.delete(weights);
}

/** @throws BackendError if the engine has none of this number */
export function present<T>(value: T | undefined, kind: StateOwner['kind'], id: number): T {
  if (value === undefined) throw new BackendError(`the engine has no ${kind} of number ${id}`);
  return value;
}

/** A policy whose weights are whole. @throws BackendError if they are not */
export function unbroken<Policy extends Pick<ResidentPolicy, 'name' | 'broken'>>(policy: Policy): Policy {
  if (!policy.broken) return policy;
  throw new BackendError(
    `policy '${policy.name}' has a part of a checkpoint that could not be read; load it, or another`,
  );
}

/** Does some work and adds the model's name to its NonFiniteErrors. */
export async function naming<Result>(model: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NonFiniteError) throw new NonFiniteError(`${model}: ${error.message}`);
    throw error;
  }
}
