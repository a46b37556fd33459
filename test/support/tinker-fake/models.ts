/** The models of the fake: real adapters on a small decoder, so that tests see the effect of requests. */

import type { AdapterSettings, GenerateRequest } from '@drmas/engine/contract';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { DecoderSampler, type SamplerResult } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import { DecoderWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import { openModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import type { HostKernels } from '@drmas/engine/kernels';
import type { RandomKey } from '@drmas/engine/math';
import type { OptimizerState } from '@drmas/engine/model';
import { selectKernels } from '@drmas/engine/node';
import { nodeFiles } from '@drmas/engine/platform';
import { fromHuggingFace, onHost, tensorsOnHost } from '../on-host.js';
import type { FakeBehaviour } from './options.js';

export interface FakeDatum {
  readonly model_input: { readonly chunks: readonly { readonly tokens: readonly number[] }[] };
  readonly loss_fn_inputs: Readonly<Record<string, { readonly data: readonly number[] } | undefined>>;
}

/**
 * A datum that went through the model, with the gradient of its log-probs before the division by the number of datums.
 */
interface Seen {
  readonly tokens: Int32Array;
  readonly gradient: Float32Array;
}

export interface FakeModel {
  readonly id: string;
  /** With its base. */
  readonly of: FakeModels;
  readonly policy: PolicyModel;
  readonly adapter: AdapterSettings;
  /** Since the last update. */
  seen: Seen[];
  /** A gradient that is not a number stays until the next update, and ruins that. */
  poisoned: boolean;
  requests: number;
  loadedSnapshot: string | undefined;
}

export interface Saved {
  readonly weights: Float32Array;
  readonly optimizer: OptimizerState;
}

export type PlayRequest = Omit<GenerateRequest, 'key'> & { readonly policy: string; readonly seed: number };

export class FakeModels {
  readonly base: DecoderWeights;
  readonly #kernels: HostKernels;
  readonly #behaviour: FakeBehaviour;
  readonly #sampler: DecoderSampler;

  private constructor(kernels: HostKernels, base: DecoderWeights, behaviour: FakeBehaviour) {
    this.#kernels = kernels;
    this.base = base;
    this.#behaviour = behaviour;
    this.#sampler = new DecoderSampler(kernels, base);
  }

  static async open(directory: string, behaviour: FakeBehaviour): Promise<FakeModels> {
    const { kernels } = await selectKernels({ threads: 1 });
    const { model, tensors } = await openModelDirectory(nodeFiles, directory);
    const base = new DecoderWeights(kernels, model.config);
    await fromHuggingFace(tensorsOnHost(base.tensors), tensors, model.config, directory);
    return new FakeModels(kernels, base, behaviour);
  }

  create(id: string, adapter: AdapterSettings, seed: number): FakeModel {
    const policy = new PolicyModel(this.#kernels, { base: this.base, adapter });
    policy.initialise(seed);
    return { id, of: this, policy, adapter, seen: [], poisoned: false, requests: 0, loadedSnapshot: undefined };
  }

  /** Log-probs of every target. */
  async logprobs(model: FakeModel, data: readonly FakeDatum[]): Promise<number[][]> {
    const sequences = data.map((datum) => sequenceOf(datum));
    return (await model.policy.score(sequences)).logprobs.map((row) => [...row.subarray(1)]);
  }

  /** The reply of a pass; its gradient is kept. Ids outside the vocabulary are not a number, as on a GPU. */
  async pass(
    model: FakeModel,
    data: readonly FakeDatum[],
    loss: string,
    config: Readonly<Record<string, number>>,
  ): Promise<{ readonly logprobs: number[][]; readonly loss: number }> {
    const { vocabSize } = this.base.config;
    if (data.some((datum) => [...sequenceOf(datum).tokens].some((token) => token >= vocabSize))) {
      model.poisoned = true;
      return { logprobs: data.map(() => [Number.NaN]), loss: Number.NaN };
    }
    const logprobs = await this.logprobs(model, data);
    let sum = 0;
    const read = this.#behaviour.clipThresholds ? config : {};
    data.forEach((datum, d) => {
      const tokens = sequenceOf(datum).tokens;
      const row = logprobs[d] as number[];
      const weights = inputOf(datum, 'weights', row, 1);
      const mask = this.#behaviour.reduction === 'token-mean' ? weights.map((w) => (w === 0 ? 0 : 1)) : weights;
      const divisor =
        this.#behaviour.reduction === 'sum'
          ? 1
          : Math.max(
              mask.reduce((a, b) => a + b, 0),
              1e-9,
            );
      const gradient = new Float32Array(tokens.length);
      row.forEach((logprob, t) => {
        const { value, slope } = tokenLoss(loss, logprob, {
          behaviour: inputOf(datum, 'logprobs', row, 0)[t] as number,
          advantage: inputOf(datum, 'advantages', row, 0)[t] as number,
          low: read.clip_low_threshold ?? 0.8,
          high: read.clip_high_threshold ?? 1.2,
        });
        const weight = mask[t] as number;
        sum += weight * value;
        gradient[t + 1] = (weight * slope) / divisor;
      });
      model.seen.push({ tokens, gradient });
    });
    return { logprobs, loss: sum };
  }

  /** AdamW on all that was seen since the last update. Returns the norm before clipping. */
  async update(model: FakeModel, adam: Readonly<Record<string, number>>): Promise<number> {
    const { seen } = model;
    model.seen = [];
    if (model.poisoned) {
      model.poisoned = false;
      onHost(model.policy.trained).fill(Number.NaN);
      model.policy.weightsChanged();
      return Number.NaN;
    }
    const scale = this.#behaviour.reduction === 'sum' ? 1 : 1 / Math.max(1, seen.length);
    const sequences = seen.map(({ tokens }) => plain(tokens));
    await model.policy.accumulate(sequences, (indices) =>
      indices.map((i) => (seen[i] as Seen).gradient.map((g) => g * scale)),
    );
    const { norm } = await model.policy.optimStep({
      optimizer: {
        type: 'adamw',
        learningRate: adam.learning_rate ?? 1e-4,
        beta1: adam.beta1 ?? 0.9,
        beta2: adam.beta2 ?? 0.95,
        epsilon: adam.eps ?? 1e-12,
        weightDecay: adam.weight_decay ?? 0,
      },
      clipNorm: this.#behaviour.clipsGradients ? (adam.grad_clip_norm ?? 0) : 0,
    });
    return norm ?? Number.NaN;
  }

  async save({ policy }: FakeModel): Promise<Saved> {
    return { weights: onHost(policy.trained).slice(), optimizer: await policy.optimizer.copyState() };
  }

  load({ policy }: FakeModel, { weights, optimizer }: Saved, withOptimizer: boolean): void {
    onHost(policy.trained).set(weights);
    policy.weightsChanged();
    if (withOptimizer) policy.optimizer.restore(optimizer);
    else policy.optimizer.reset();
  }

  /** Registers the weights that `play` samples from under this name. */
  show(name: string, adapter: AdapterSettings, weights: Float32Array): void {
    const copy = this.#kernels.allocate(weights.length);
    copy.set(weights);
    this.#sampler.load(name, copy, 0, adapter);
  }

  /** Plays requests together. */
  async play(requests: readonly PlayRequest[]): Promise<SamplerResult[]> {
    requests.forEach(({ seed, ...request }, id) => {
      const key: RandomKey = [seed >>> 0, 1];
      this.#sampler.submit({ ...request, key, id });
    });
    const results: SamplerResult[] = [];
    while (this.#sampler.busy) results.push(...(await this.#sampler.step()));
    return results.sort((a, b) => a.id - b.id);
  }
}

function plain(tokens: Int32Array) {
  return { tokens, mask: new Uint8Array(tokens.length).fill(1, 1), temperature: 1 };
}

function sequenceOf({ model_input, loss_fn_inputs }: FakeDatum) {
  const inputs = model_input.chunks.flatMap(({ tokens }) => tokens);
  const targets = loss_fn_inputs.target_tokens?.data ?? [];
  return plain(Int32Array.from([...inputs, targets.at(-1) ?? 0]));
}

/** Servers pad short rows, silently. */
function inputOf({ loss_fn_inputs }: FakeDatum, name: string, like: readonly number[], otherwise: number): number[] {
  const data = loss_fn_inputs[name]?.data;
  return like.map((_, t) => (data === undefined ? otherwise : (data[t] ?? 0)));
}

interface TokenInputs {
  readonly behaviour: number;
  readonly advantage: number;
  readonly low: number;
  readonly high: number;
}

/** A server's own losses of one token, with their slope in its log-prob. */
function tokenLoss(loss: string, logprob: number, { behaviour, advantage, low, high }: TokenInputs) {
  if (loss === 'cross_entropy') return { value: -logprob, slope: -1 };
  const ratio = Math.exp(logprob - behaviour);
  const clipped = Math.min(Math.max(ratio, low), high);
  if (loss === 'importance_sampling') return { value: -ratio * advantage, slope: -ratio * advantage };
  if (loss === 'cispo') return { value: -clipped * logprob * advantage, slope: -clipped * advantage };
  const objective = Math.min(ratio * advantage, clipped * advantage);
  return { value: -objective, slope: objective === ratio * advantage ? -objective : 0 };
}
