/** What a backend can do, and what computes. */
import type { LossSpec } from '../loss/loss-spec.js';
import type { OptimizerSettings } from './optimizer.js';

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
