/**
 * The methods of the engine on the worker. Losses are computed here: the worker sends log-probs and entropies within a
 * call, and gets the slopes of the loss back. So every loss, users' own ones too, runs without a line of Python. First
 * weights and random numbers come from here as well, so a seed means the same on every engine.
 */
import { createHash } from 'node:crypto';
import { forwardBackward } from '../backends/forward-backward.js';
import type { AdapterSettings, DecoderConfig, Precision } from '../contract/architecture.js';
import type { ForwardBackwardResult, ValueLossResult, ValueLossSettings } from '../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../contract/optimizer-settings.js';
import type { CriticState, ExportOptions, PolicyState } from '../embedded/stored-state.js';
import type {
  EngineArguments,
  EngineMethod,
  EngineResult,
  NumberedRequest,
} from '../embedded/thread/engine-protocol.js';
import type { IncomingOptimizer, StateOwner } from '../embedded/thread/incoming-states.js';
import { LossModules } from '../embedded/thread/loss-modules.js';
import { criticSlopes } from '../embedded/thread/resident-critic.js';
import {
  naming,
  type PolicyShape,
  present,
  type TokenLosses,
  tokenLosses,
  unbroken,
} from '../embedded/thread/resident-policy.js';
import { type SampleBatch, unpackSamples } from '../embedded/thread/sample-batch.js';
import { BackendError } from '../errors.js';
import type { AnyLoss } from '../loss/loss-spec.js';
import type { ForwardBackwardOptions } from '../loss/objective/objective-sums.js';
import { uniformAt } from '../math.js';
import type { Upstream } from '../model/decoder/decoder.js';
import type { OptimizerState } from '../model/decoder/flat-optimizer.js';
import { adapterSeed } from '../model/decoder/policy-model.js';
import {
  adapterParameterCount,
  adapterTensors,
  initialiseAdapter,
  mergeAdapter,
} from '../model/decoder/weights/adapter-tensors.js';
import { decoderTensors, initialise, parameterCount } from '../model/decoder/weights/decoder-tensors.js';
import { ropeFrequencies } from '../model/decoder/weights/rotary-table.js';
import type { BlockPiece, FilePiece, TensorPiece } from '../model/formats/tensor.js';
import type { TrainingSample, ValueSample } from '../nouns.js';
import { importUserModule } from '../platform.js';
import type { Arrays } from './frames.js';
import { IncomingState, trainedCount } from './incoming-state.js';
import { arrayIn, type TorchAnswer, type TorchProcess } from './torch-process.js';
import { MicroBatch, rowsOf, sentSamples } from './torch-samples.js';

type EngineMethods = {
  readonly [Method in EngineMethod]: (...args: EngineArguments<Method>) => Promise<EngineResult<Method>>;
};

type First = EngineArguments<'createPolicy'>[2];

interface Resident {
  readonly name: string;
  readonly shape: PolicyShape;
  readonly config: DecoderConfig;
  /** Loading failed half-way: only some of the weights come from the file. */
  broken: boolean;
}

/** A part that trains with one optimiser: a policy, or the trunk or the head of a critic. */
type TrainedState = CriticState['head'];

/** The state of an optimiser, without its numbers. */
interface PartFacts extends Pick<OptimizerState, 'type' | 'step'> {
  readonly buffers: readonly string[];
}

export class TorchEngine implements EngineMethods {
  readonly #process: TorchProcess;
  readonly #losses = new LossModules(importUserModule);
  readonly #bases = new Map<number, DecoderConfig>();
  readonly #policies = new Map<number, Resident>();
  /** The policies that critics are like. */
  readonly #critics = new Map<number, Resident>();
  readonly #incoming = new Map<number, IncomingState>();

  constructor(process: TorchProcess) {
    this.#process = process;
  }

  /** Matrices never come in blocks: the pieces of a GGUF file come as floats. */
  async createBase(...[id, config, first]: EngineArguments<'createBase'>): Promise<boolean> {
    this.#bases.set(id, config);
    if (typeof first === 'object' && 'seed' in first) {
      const flat = new Float32Array(parameterCount(config));
      initialise(config, decoderTensors(config, flat), first.seed, first.embeddingDeviation);
      await this.#process.call('create_base', { id, config }, { weights: flat, ...frequencies(config) });
    }
    return false;
  }

  async createPolicy(
    id: number,
    { name, shape, precision }: { readonly name: string; readonly shape: PolicyShape; readonly precision: Precision },
    first?: First,
  ): Promise<number> {
    const config = 'trunk' in shape ? shape.trunk : 'base' in shape ? this.#base(shape.base) : shape;
    const flat = new Float32Array(trainedCount(shape, config));
    if (first !== undefined && !('like' in first)) drawFirst(shape, config, flat, first);
    const sent = 'trunk' in shape || 'base' in shape ? shape : { config: shape };
    await this.#process.call('create_policy', { id, name, shape: sent, precision }, { flat, ...frequencies(config) });
    this.#policies.set(id, { name, shape, config, broken: false });
    if (first !== undefined && 'like' in first) await this.copyWeights(first.like, id);
    return flat.length > 0 ? flat.length : parameterCount(config);
  }

  async dropPolicy(id: number): Promise<void> {
    await this.#process.call('drop', { id });
    this.#policies.delete(id);
  }

  async logits(id: number, tokens: Int32Array): Promise<Float32Array> {
    return arrayIn(await this.#process.call('logits', { id: this.#sound(id) }, { tokens }), 'logits');
  }

  async logprobs(id: number, batch: SampleBatch): Promise<Float32Array[]> {
    return (await this.#score(id, unpackSamples(batch))).logprobs;
  }

  async forwardBackward(
    id: number,
    batch: SampleBatch,
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult> {
    const model = {
      score: (samples: readonly TrainingSample[]) => this.#score(id, samples),
      accumulate: (samples: readonly TrainingSample[], upstream: Upstream, entropies?: Upstream) =>
        this.#accumulate(id, samples, upstream, entropies),
    };
    const loss = await this.#losses.open(options.loss);
    return forwardBackward(model, unpackSamples(batch), { ...options, loss });
  }

  async addTokenLosses(id: number, batch: SampleBatch, loss: AnyLoss): Promise<TokenLosses> {
    return tokenLosses(unpackSamples(batch), loss, (samples, upstream) => this.#accumulate(id, samples, upstream));
  }

  async discardGradient(id: number): Promise<void> {
    await this.#process.call('discard', { id });
  }

  async optimStep(id: number, settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#naming(id, () => this.#step(this.#sound(id), settings));
  }

  async publish(id: number, keep = 1): Promise<number> {
    return (await this.#process.call('publish', { id: this.#sound(id), keep })).value.version as number;
  }

  async copyWeights(from: number, to: number): Promise<void> {
    await this.#process.call('copy_weights', { source: this.#sound(from), target: this.#sound(to) });
  }

  async resetOptimizer(id: number): Promise<void> {
    await this.#process.call('reset_optimizer', { id });
  }

  async exportState(id: number, { optimizer, hash }: ExportOptions): Promise<PolicyState> {
    const { shape } = this.#policy(id);
    const hashed = (weights: Float32Array) => ({ weights, ...(hash === true && { hash: sha256(weights) }) });
    if ('base' in shape && shape.adapter === undefined) return hashed(await this.exportBase(shape.base));
    const { parts, version } = await this.#naming(id, () => this.#state(this.#sound(id), optimizer));
    const [trained] = parts as [TrainedState];
    return { ...hashed(trained.weights), ...(optimizer && { optimizer: { ...trained.optimizer, version } }) };
  }

  async exportMerged(id: number): Promise<Float32Array> {
    const { name, shape, config } = this.#policy(id);
    if ('trunk' in shape) throw new BackendError(`policy '${name}' is one model for each agent: merge each alone`);
    const { weights } = await this.exportState(id, { optimizer: false });
    if (!('base' in shape) || shape.adapter === undefined) return weights;
    const whole = await this.exportBase(shape.base);
    const adapter = adapterTensors(config, shape.adapter, weights);
    mergeAdapter(config, shape.adapter, decoderTensors(config, whole), adapter);
    return whole;
  }

  async exportBase(id: number): Promise<Float32Array> {
    return arrayIn(await this.#process.call('base_flat', { id }), 'weights');
  }

  async baseHash(id: number): Promise<string> {
    return (await this.#process.call('base_hash', { id })).value.hash as string;
  }

  async trunkHash(id: number): Promise<string> {
    const { weights } = await this.exportState(id, { optimizer: false });
    return sha256(weights.subarray(0, parameterCount(this.#policy(id).config)));
  }

  async beginState(owner: StateOwner, optimizer?: IncomingOptimizer): Promise<void> {
    const { kind, id } = owner;
    if (kind === 'base') {
      this.#incoming.set(id, new IncomingState(this.#base(id), undefined, undefined));
      return;
    }
    const { shape, config } = kind === 'critic' ? this.#critic(id) : this.#policy(id);
    if ('base' in shape && shape.adapter === undefined)
      throw new BackendError('a frozen model has no weights of its own to train');
    this.#incoming.set(id, new IncomingState(config, shape, optimizer));
  }

  async fillState({ kind, id }: StateOwner, piece: TensorPiece | BlockPiece | FilePiece): Promise<void> {
    if (!this.#incoming.get(id)?.put(piece)) throw new BackendError(`tensor "${piece.name}" has no place in a ${kind}`);
  }

  async endState({ kind, id }: StateOwner, complete: boolean): Promise<void> {
    const incoming = this.#incoming.get(id);
    this.#incoming.delete(id);
    if (kind === 'policy') this.#policy(id).broken = !complete;
    if (incoming === undefined) return;
    if (!complete) {
      if (kind === 'base') this.#bases.delete(id);
      return;
    }
    const { arrays, optimizer, version, files } = incoming.result();
    if (kind === 'base') {
      const config = this.#base(id);
      await this.#process.call('create_base', { id, config, files }, { ...arrays, ...frequencies(config) });
    } else if (kind === 'critic') await this.#process.call('set_state', { id, optimizer }, arrays);
    else await this.#process.call('set_state', { id, optimizer, next_version: version }, arrays);
  }

  async createCritic(id: number, policy: number): Promise<void> {
    await this.#process.call('create_critic', { id, policy: this.#sound(policy) });
    this.#critics.set(id, this.#policy(policy));
  }

  async criticValues(id: number, batch: SampleBatch): Promise<Float32Array[]> {
    const samples = unpackSamples(batch);
    const { facts, arrays } = sentSamples(samples, this.#critic(id).config.context, false);
    const answer = await this.#process.call('score', { id, samples: facts }, arrays);
    return rowsOf(arrayIn(answer, 'scores'), samples);
  }

  async criticForwardBackward(
    id: number,
    samples: readonly ValueSample[],
    settings: ValueLossSettings,
  ): Promise<ValueLossResult> {
    const { facts, arrays } = sentSamples(samples, this.#critic(id).config.context, false);
    const { slopes, result } = criticSlopes(samples, settings);
    await this.#exchange({ id, samples: facts }, arrays, (batch) => {
      const rows = batch.rows('values', samples);
      return { values: batch.gathered(batch.indices.map((index, i) => slopes(index, rows[i] as Float32Array))) };
    });
    return result();
  }

  criticOptimStep(id: number, settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#namingCritic(id, () => this.#step(id, settings));
  }

  async exportCritic(id: number): Promise<CriticState> {
    const { parts, version } = await this.#namingCritic(id, () => this.#state(id, true));
    const [{ weights, optimizer }, head] = parts as [TrainedState, TrainedState];
    return { trunk: { weights, optimizer: { ...optimizer, version } }, head };
  }

  async importHead(id: number, { weights, optimizer: { type, step, buffers } }: CriticState['head']): Promise<void> {
    const optimizer = { type, step, buffers: Object.keys(buffers) };
    await this.#process.call('set_state', { id, part: 1, optimizer }, { weights, ...buffers });
  }

  /** Undefined: the worker counts memory by itself. */
  async deviceCounts(): Promise<undefined> {}

  /** Sends requests for samples, with the random numbers of their draws. */
  generate(requests: readonly NumberedRequest[]): void {
    const most = requests.map(({ policy, request: { prompt, maxTokens } }) => {
      const room = (this.#policies.get(policy)?.config.context ?? 0) - prompt.length;
      return Math.max(1, Math.min(maxTokens, room));
    });
    const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
    const prompts = new Int32Array(sum(requests.map(({ request }) => request.prompt.length)));
    const uniforms = new Float32Array(sum(most));
    let [read, drawn] = [0, 0];
    const sent = requests.map(({ id, policy, request: { prompt, key, ...request }, streamed }, i) => {
      prompts.set(prompt, read);
      read += prompt.length;
      const uniformsLength = most[i] as number;
      for (let t = 0; t < uniformsLength; t++) uniforms[drawn++] = uniformAt(key, t);
      return { ...request, id, policy, streamed, promptLength: prompt.length, uniformsLength };
    });
    this.#process.send({ type: 'generate', requests: sent }, { prompts, uniforms });
  }

  #base(id: number): DecoderConfig {
    return present(this.#bases.get(id), 'base', id);
  }

  #policy(id: number): Resident {
    return present(this.#policies.get(id), 'policy', id);
  }

  #critic(id: number): Resident {
    return present(this.#critics.get(id), 'critic', id);
  }

  /** The number of a policy whose weights are whole. @throws BackendError if they are not */
  #sound(id: number): number {
    unbroken(this.#policy(id));
    return id;
  }

  async #step(id: number, settings: OptimStepSettings): Promise<OptimStepResult> {
    const { skipAboveNorm, ...others } = settings;
    const sent = { ...others, ...(Number.isFinite(skipAboveNorm) && { skipAboveNorm }) };
    return (await this.#process.call('optim_step', { id, settings: sent })).value as unknown as OptimStepResult;
  }

  async #state(id: number, optimizer: boolean): Promise<{ parts: TrainedState[]; version: number }> {
    const { value, arrays } = await this.#process.call('state', { id, optimizer });
    const parts = (value.parts as PartFacts[]).map(({ type, step, buffers }, i) => {
      const of = (name: string) => arrays[`${i} ${name}`] as Float32Array;
      const remembered = Object.fromEntries(buffers.map((name) => [name, of(name)] as const));
      return { weights: of('weights'), optimizer: { type, step, buffers: remembered } };
    });
    return { parts, version: value.version as number };
  }

  async #score(id: number, samples: readonly TrainingSample[]) {
    const { facts, arrays } = this.#sent(id, samples);
    const answer = await this.#process.call('score', { id, samples: facts }, arrays);
    return { logprobs: rowsOf(arrayIn(answer, 'scores'), samples) };
  }

  async #accumulate(id: number, samples: readonly TrainingSample[], upstream: Upstream, entropyUpstream?: Upstream) {
    const { facts, arrays } = this.#sent(id, samples);
    const entropies: Float32Array[] = samples.map(({ tokens }) => new Float32Array(tokens.length));
    const answer = await this.#exchange({ id, samples: facts }, arrays, (batch) => {
      const ofBatch = batch.rows('entropies', samples);
      batch.indices.forEach((index, i) => {
        entropies[index] = ofBatch[i] as Float32Array;
      });
      return {
        logprobs: batch.gathered(upstream(batch.indices, batch.rows('logprobs', samples))),
        entropies: batch.gathered(entropyUpstream?.(batch.indices, ofBatch)),
      };
    });
    const [gradientNorm] = arrayIn<Float64Array>(answer, 'norm') as unknown as [number];
    return { logprobs: rowsOf(arrayIn(answer, 'scores'), samples), entropies, gradientNorm };
  }

  #sent(id: number, samples: readonly TrainingSample[]) {
    const { shape, config } = this.#policy(this.#sound(id));
    return sentSamples(samples, config.context, 'trunk' in shape);
  }

  /** A call of `accumulate`, which asks for slopes. An error of the loss ends it without a gradient. */
  #exchange(args: object, arrays: Arrays, slopes: (batch: MicroBatch) => Arrays): Promise<TorchAnswer> {
    return this.#process.call('accumulate', args, arrays, (frame) => slopes(new MicroBatch(frame)));
  }

  #naming<Result>(id: number, work: () => Promise<Result>): Promise<Result> {
    return naming(`policy '${this.#policy(id).name}'`, work);
  }

  #namingCritic<Result>(id: number, work: () => Promise<Result>): Promise<Result> {
    return naming(`the critic of policy '${this.#critic(id).name}'`, work);
  }
}

/** Draws the first weights that a policy trains; a trunk's adapters have seeds of their own. */
function drawFirst(
  shape: PolicyShape,
  config: DecoderConfig,
  flat: Float32Array,
  first: Exclude<NonNullable<First>, { readonly like: number }>,
): void {
  const adapterAt = (settings: AdapterSettings, at: number, seed: number) => {
    const memory = flat.subarray(at, at + adapterParameterCount(config, settings));
    initialiseAdapter(config, settings, adapterTensors(config, settings, memory), seed);
  };
  if ('base' in shape) {
    if (shape.adapter !== undefined && 'seed' in first) adapterAt(shape.adapter, 0, first.seed);
    return;
  }
  const whole = flat.subarray(0, parameterCount(config));
  if ('seed' in first) initialise(config, decoderTensors(config, whole), first.seed, first.embeddingDeviation);
  if (!('trunk' in shape) || first.adaptersSeed === undefined) return;
  const each = adapterParameterCount(config, shape.adapter);
  for (const i of shape.agents.keys())
    adapterAt(shape.adapter, whole.length + i * each, adapterSeed(first.adaptersSeed, i));
}

function frequencies(config: DecoderConfig): Arrays {
  const { slidingWindow } = config;
  const local = slidingWindow && {
    local: ropeFrequencies({ ...config, ropeBase: slidingWindow.ropeBase, ropeScaling: undefined }),
  };
  return { frequencies: ropeFrequencies(config), ...local };
}

/** Bytes that are hashed at a time. */
const MOST_AT_ONCE = 2 ** 24;

function sha256({ buffer, byteOffset, byteLength }: Float32Array): string {
  const hash = createHash('sha256');
  for (let at = 0; at < byteLength; at += MOST_AT_ONCE)
    hash.update(new Uint8Array(buffer, byteOffset + at, Math.min(MOST_AT_ONCE, byteLength - at)));
  return hash.digest('hex');
}
