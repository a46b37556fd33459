/**
 * Handles of the models in a backend: one type for each role. Callers submit calls in order and await each one
 * separately.
 */

import type { LossMetrics } from '../loss/loss-metrics.js';
import type { ForwardBackwardOptions, SampleRatios } from '../loss/objective/objective-sums.js';
import type { TrainingSample, ValueSample } from '../nouns.js';
import type { OptimStepResult, OptimStepSettings } from './optimizer-settings.js';
import type { PlayableHandle } from './sampling.js';

/** A model that samples and scores. Frozen agents and references use nothing else. */
export interface ModelHandle extends PlayableHandle {
  /** The name of the model in messages. It identifies nothing: two handles may have the same name. */
  readonly name: string;
  /** Number of trained parameters; of an adapter, without its base. Missing if only a server knows it. */
  readonly parameters?: number | undefined;
  /** The number of token ids that the model has logits for. Missing: as many as the tokenizer has. */
  readonly vocabSize?: number | undefined;
  /** Warnings for people from the opening of the model. */
  readonly warnings: readonly string[];
  /** Log-probs of each sample's masked tokens at its temperature, 0 elsewhere: one [T] row a sample. */
  logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]>;
  /**
   * Makes the current weights those that `generate` plays. Returns their version: 0, 1, 2 ...
   * @param keep The versions that can be played from now on, this one among them; 1 by default
   */
  publish(keep?: number): Promise<number>;
  /** The version that was last published; undefined before the first. */
  readonly version: number | undefined;
  /** Writes the weights into an existing directory. */
  save(directory: string): Promise<void>;
}

/** A model that trains. */
export interface PolicyHandle extends ModelHandle {
  /** Adds the gradient of the loss to the policy's gradient. */
  forwardBackward(samples: readonly TrainingSample[], options: ForwardBackwardOptions): Promise<ForwardBackwardResult>;
  /** Clears the gradient. Weights and optimiser stay as they are. */
  discardGradient(): Promise<void>;
  /** Clips, updates the weights unless the result says why not, clears the gradient. */
  optimStep(settings: OptimStepSettings): Promise<OptimStepResult>;
  /** Clears moments and step count, so that a new phase starts with a fresh optimiser. */
  resetOptimizer(): Promise<void>;
  /**
   * Takes over the weights of a policy of the same shape and backend, and clears the optimiser's state.
   * @throws BackendError
   */
  copyFrom(policy: PolicyHandle): Promise<void>;
  /** Writes the weights, and the optimiser's state when asked, into an existing directory. */
  save(directory: string, options?: StateOptions): Promise<void>;
  /** Reads the weights that `save` wrote. @throws CheckpointError */
  load(directory: string, options: StateOptions): Promise<void>;
}

/**
 * A model like a policy's with a head that gives a number for every written token from the tokens before it, 0 at
 * first.
 */
export interface CriticHandle {
  /** The values of each sample's masked tokens, 0 elsewhere: one [T] row a sample. */
  values(samples: readonly TrainingSample[]): Promise<Float32Array[]>;
  /** Adds the gradient of the clipped value loss, a mean over tokens, to the critic's gradient. */
  forwardBackward(samples: readonly ValueSample[], settings: ValueLossSettings): Promise<ValueLossResult>;
  /** Clips, updates the weights unless the result says why not, clears the gradient. */
  optimStep(settings: OptimStepSettings): Promise<OptimStepResult>;
  /** Writes weights, head and the state of its optimisers into an existing directory. */
  save(directory: string): Promise<void>;
}

/** The handle of each role. */
export interface Handles {
  /** For models that only sample and score: frozen agents, references. */
  readonly frozen: ModelHandle;
  /** For models that train. */
  readonly policy: PolicyHandle;
  readonly critic: CriticHandle;
}

/** The part that a model plays; each role has a handle with methods of its own. */
export type Role = keyof Handles;

/** The parts of a policy's state to save or to load. */
export interface StateOptions {
  /** Whether the optimiser's state goes along. */
  readonly optimizer: boolean;
}

/** The loss and the metrics of a backward pass, whose gradient the handle has added to its own. */
export interface ForwardBackwardResult {
  readonly loss: number;
  /** Norm of the gradient of this call alone, before clipping; absent if the backend does not know it. */
  readonly gradientNorm?: number;
  readonly metrics: LossMetrics;
  /** Tokens that went through the model after merging identical rows. */
  readonly tokens: number;
  /** One entry a sample, if the options keep ratios. */
  readonly ratios?: SampleRatios;
}

/** The loss of a critic: its clip and its divisor. */
export interface ValueLossSettings {
  /** Values may move this far from the old ones before the loss stops them. */
  readonly clip: number;
  /** Divisor: response tokens of the whole mini-batch. */
  readonly normalizer: number;
}

/** The loss of a critic over a call, and the share of its tokens that were clipped. */
export interface ValueLossResult {
  readonly loss: number;
  readonly clipFraction: number;
}
