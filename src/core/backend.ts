/**
 * The contract between the training loop and whatever holds the models. Shaped like the Tinker training protocol: the loss
 * is named, token advantages and behaviour log-probs come from the client, every call is submitted and awaited separately.
 */
import type { FinishReason } from './episode.js';
import type { KlTerm, LossSpec, LossTerms } from './loss.js';
import type { RandomKey } from './random.js';
import type { TrainingSample, ValueSample } from './sample.js';
import type { Tokenizer } from './tokenizer.js';

export interface Sampling {
  /** 0 takes the most probable token. */
  readonly temperature: number;
  /** Keep the smallest set of tokens whose probability reaches this; 1 keeps all. */
  readonly topP: number;
  /** Keep this many of the most probable tokens; 0 keeps all. */
  readonly topK: number;
  readonly maxTokens: number;
}

export interface GenerateRequest extends Sampling {
  readonly policy: string;
  readonly prompt: readonly number[]; // [P], at least one token
  readonly stopTokens: readonly number[];
  /** Names the random stream of this response. */
  readonly key: RandomKey;
}

export interface Generation {
  readonly tokens: number[]; // [R], the stop token included if one was sampled
  /** log softmax(logits / temperature) over the full vocabulary, before top-p and top-k. */
  readonly logprobs: number[]; // [R]
  readonly finishReason: FinishReason;
  readonly policyVersion: number;
}

export interface SampleBackend {
  /** @throws BackendError when the prompt does not fit the model's context. Rejects with the signal's reason when aborted. */
  generate(request: GenerateRequest, signal?: AbortSignal): Promise<Generation>;
  /** Makes the weights last published for `policy` the ones that `generate` uses. */
  sync(policy: string): Promise<{ version: number }>;
  /** Holds requests back until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  health(): Promise<{ ok: boolean; running: number; waiting: number }>;
}

/** What a backend can do. What a recipe asks for beyond it is refused by name before the run. */
export interface Capabilities {
  readonly losses: readonly LossSpec['type'][];
  readonly optimizers: readonly OptimizerSettings['type'][];
  readonly entropyBonus: boolean;
  readonly critic: boolean;
  /** Holds models beside the policies, to be scored against, and copies weights into them. */
  readonly references: boolean;
  /** Trains whole models, not only adapters. */
  readonly fullParameters: boolean;
  /** Makes models from a seed; otherwise they come from directories. */
  readonly randomModels: boolean;
  /** Trains at the temperature that a response was sampled at; otherwise only at 1. */
  readonly anyTemperature: boolean;
  /** Updates keep to `OptimStepSettings.clipNorm`. */
  readonly clipsGradients: boolean;
  /** Knows the gradient's norm before it updates, and so can leave an update out (`OptimStepSettings.skipAboveNorm`). */
  readonly skipsUpdates: boolean;
  /** Reads adapters from directories of PEFT's. */
  readonly savedAdapters: boolean;
  /** Reads weights from directories here and `save` writes them; otherwise they are a server's, which keeps them. */
  readonly localWeights: boolean;
}

/** What computes, as runs record it. */
export interface Hardware {
  readonly kernels: string;
  readonly isa: string;
  /** What a person should know about it. */
  readonly notice?: string | undefined;
  /** What a server that computes was found to do. */
  readonly server?: Readonly<Record<string, unknown>>;
}

export interface AdamWSettings {
  readonly type: 'adamw';
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
}

/** As torch.optim.SGD without dampening: the weight decay joins the gradient and, with it, the momentum. */
export interface SgdSettings {
  readonly type: 'sgd';
  readonly learningRate: number;
  /** Share of the last direction that is kept; 0 keeps none. */
  readonly momentum: number;
  /** Steps along gradient + momentum x the new direction. */
  readonly nesterov: boolean;
  readonly weightDecay: number;
}

export type OptimizerSettings = AdamWSettings | SgdSettings;

export interface OptimStepSettings {
  readonly optimizer: OptimizerSettings;
  /** Gradients with a larger norm are scaled down to this one; 0 switches clipping off. */
  readonly clipNorm: number;
  /** Skip the update when the norm before clipping exceeds this. */
  readonly skipAboveNorm?: number;
}

export interface ForwardBackwardOptions {
  /** `demonstrations`: the cross-entropy of every written token, whatever the advantages; divided by the normalizer alone. */
  readonly loss: LossSpec | { readonly type: 'demonstrations' };
  /**
   * Divisor of the summed loss: response tokens (token-mean) or sequences (seq-mean-*) of the whole mini-batch, so that a
   * mini-batch may be submitted in parts, rows with advantage 0 left out. For `seq-mean-token-sum-norm` the row width is
   * part of it.
   */
  readonly normalizer: number;
  /** Added to the loss; every sample then needs `referenceLogprobs`. Not with `demonstrations`. */
  readonly kl?: KlTerm;
  /**
   * Times the entropy of the policy at each token, at the sample's temperature and aggregated as the policy loss is, it is
   * taken off the loss. Only for a backend with the capability `entropyBonus`, and not with `demonstrations`.
   */
  readonly entropyCoefficient?: number;
}

/** Over the response tokens that were sent. */
export interface LossMetrics extends LossTerms {
  /** Share of tokens (of sequences, where these share a ratio) that took the clipped side of the objective (CISPO: whose weight was clamped). */
  readonly clipFraction: number;
  /** Share stopped by the dual clip. */
  readonly clipFractionLower: number;
  /** Mean of old log-prob - log-prob; old is the behaviour's or, where importance is corrected, the proximal policy's. */
  readonly approxKl: number;
  /** Largest |ratio - 1| of a token; exactly 0 where both log-probs are equal, as on the first pass over on-policy samples. */
  readonly maxRatioDeviation: number;
  /** Mean |log-prob - behaviour log-prob|. On the first pass: how far the sampler is from the trainer. */
  readonly logprobGap: number;
}

export interface ForwardBackwardResult {
  readonly loss: number;
  /** Norm of what this call alone added to the gradient, before clipping; not a number where the backend cannot tell. */
  readonly gradientNorm: number;
  readonly metrics: LossMetrics & { readonly entropy: number };
  /** Tokens that went through the model after merging identical rows. */
  readonly tokens: number;
}

export interface OptimStepResult {
  /** Norm of the whole gradient before clipping; not a number when it was not one, or when the backend does not tell. */
  readonly gradientNorm: number;
  /** False when the step was dropped because its norm was not finite or above `skipAboveNorm`. */
  readonly applied: boolean;
}

/** How positions are stretched beyond the context that a model was first trained on. */
export type RopeScaling =
  | { readonly type: 'linear'; readonly factor: number }
  | {
      readonly type: 'llama3';
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      /** Context length before stretching. */
      readonly originalContext: number;
    };

/**
 * A decoder in the Llama layout: its sizes, and what sets families apart. Field names follow the transformer literature, not
 * one vendor's file. The features are absent where a decoder does without them, so that equal decoders have equal configs.
 */
export interface DecoderConfig {
  readonly vocabSize: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly feedForward: number;
  readonly context: number;
  readonly ropeBase: number;
  readonly normEpsilon: number;
  /** Absent: positions are rotated as they are. */
  readonly ropeScaling?: RopeScaling;
  /** Attention projections that add a bias: those of queries, keys and values, or these and the one back to the stream. */
  readonly attentionBias?: 'qkv' | 'qkvo';
  /** Queries and keys are normalised (RMSNorm) head by head before the rotation. */
  readonly queryKeyNorm?: true;
  /** The output head is a matrix of its own, not the embedding. */
  readonly untiedOutput?: true;
}

/** The linear layers of a decoder's layer: four of attention, three of the SwiGLU block. */
export const PROJECTIONS = ['q', 'k', 'v', 'o', 'gate', 'up', 'down'] as const;
export type ProjectionName = (typeof PROJECTIONS)[number];

/**
 * A low-rank adapter (LoRA, Hu et al. 2021): y = x W of each target becomes x W + (alpha / rank) (x A) B with A [inputs,
 * rank] and B [rank, outputs]. Only A and B are trained; W is the base's, and shared by all adapters on it.
 */
export interface AdapterSettings {
  readonly rank: number;
  readonly alpha: number;
  /** At least one, in the order of `PROJECTIONS`. */
  readonly targets: readonly ProjectionName[];
}

/** Where a model's first weights come from. */
export type BaseSpec =
  | {
      readonly type: 'random';
      readonly config: DecoderConfig;
      readonly tokenizer: Tokenizer;
      readonly seed: number;
      /** Standard deviation of the first embedding. Default width^-1/2. */
      readonly embeddingDeviation?: number | undefined;
    }
  | {
      readonly type: 'directory';
      readonly directory: string;
      /** What the user calls it: the directory, or a name on a hub. The directory where it is missing. */
      readonly name?: string;
    };

/** A policy of weights of its own, or one that adapts a base; a backend stores equal bases once. */
export type PolicySpec =
  | BaseSpec
  | {
      readonly type: 'adapter';
      readonly base: BaseSpec;
      readonly adapter: AdapterSettings;
      /** Of the adapter's first weights. */
      readonly seed: number;
    }
  /** A base as it is: it plays and scores, nothing trains it. */
  | { readonly type: 'frozen'; readonly base: BaseSpec }
  /** An adapter that begins as it was saved, in a directory of PEFT's; its settings are those of the directory. */
  | { readonly type: 'saved-adapter'; readonly base: BaseSpec; readonly directory: string };

export interface PolicyInfo {
  /** What a person should know about how it was read. */
  readonly warnings?: readonly string[];
  /** Trained ones: of an adapter, without its base. Missing where only a server knows. */
  readonly parameters?: number | undefined;
  /** Longest prompt + response in tokens. */
  readonly context: number;
  readonly tokenizer: Tokenizer;
}

/** Divisor: response tokens of the whole mini-batch. */
export interface ValueLossSettings {
  /** Values may move this far from the old ones before the loss stops them. */
  readonly clip: number;
  readonly normalizer: number;
}

/**
 * Critics: each a model like a policy's, with a head that gives a number for every written token from the tokens before it.
 * They have names of their own.
 */
export interface CriticBackend {
  /** A critic like this policy: its weights as they are now, all values 0. */
  create(critic: string, policy: string): Promise<void>;
  /** The values of each sample's masked tokens, 0 elsewhere: one [T] row a sample. */
  values(critic: string, samples: readonly TrainingSample[]): Promise<Float32Array[]>;
  /** Adds the gradient of the clipped value loss, a mean over tokens, to the critic's gradient. */
  forwardBackward(
    critic: string,
    samples: readonly ValueSample[],
    settings: ValueLossSettings,
  ): Promise<{ readonly loss: number; readonly clipFraction: number }>;
  /** As of a policy. */
  optimStep(critic: string, settings: OptimStepSettings): Promise<OptimStepResult>;
  /** Writes weights, head and the state of its optimisers into an existing directory. */
  save(critic: string, directory: string): Promise<void>;
  /** Reads what `save` wrote. @throws CheckpointError */
  load(critic: string, directory: string): Promise<void>;
}

export interface TrainBackend {
  readonly capabilities: Capabilities;
  /** There where `capabilities.critic` says so. */
  readonly critics?: CriticBackend;
  createPolicy(name: string, spec: PolicySpec): Promise<PolicyInfo>;
  /** Log-probs of each sample's masked tokens at its temperature, 0 elsewhere: one [T] row a sample. */
  forward(policy: string, samples: readonly TrainingSample[]): Promise<Float32Array[]>;
  /** Adds the gradient of the loss to the policy's gradient. */
  forwardBackward(
    policy: string,
    samples: readonly TrainingSample[],
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult>;
  /** Clips, updates the weights unless the gradient is not finite, clears the gradient. */
  optimStep(policy: string, settings: OptimStepSettings): Promise<OptimStepResult>;
  /** Makes the current weights available to the sampler under the next version. */
  publish(policy: string): Promise<{ version: number }>;
  /** Copies the weights of one policy into another of the same shape and clears the target's optimiser state. */
  copyWeights(from: string, to: string): Promise<void>;
  /** Clears moments and step count, so that a new phase starts with a fresh optimiser. */
  resetOptimizer(policy: string): Promise<void>;
  /** Writes weights (and the optimiser's state when asked) into an existing directory. */
  save(policy: string, directory: string, options: { optimizer: boolean }): Promise<void>;
  /** Reads what `save` wrote. @throws CheckpointError */
  load(policy: string, directory: string, options: { optimizer: boolean }): Promise<void>;
  dispose(): Promise<void>;
}
