/**
 * The contract between the training loop and whatever holds the models. Shaped like a training protocol over a network: the loss
 * is named, token advantages and behaviour log-probs come from the client, every call is submitted and awaited separately.
 */
import type { TrainingSample, ValueSample } from '../core/sample.js';
import type { ForwardBackwardOptions, LossMetrics } from '../loss/objective/objective-options.js';
import type { Capabilities } from './capabilities.js';
import type { OptimStepResult, OptimStepSettings } from './optimizer.js';
import type { PolicyInfo, PolicySpec } from './weights.js';

export interface ForwardBackwardResult {
  readonly loss: number;
  /** Norm of what this call alone added to the gradient, before clipping; not a number where the backend cannot tell. */
  readonly gradientNorm: number;
  readonly metrics: LossMetrics & { readonly entropy: number };
  /** Tokens that went through the model after merging identical rows. */
  readonly tokens: number;
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
