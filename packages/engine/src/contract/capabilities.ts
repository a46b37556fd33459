/** The capabilities of a backend, and its hardware. */
import type { LossSpec } from '../loss/loss-spec.js';
import type { Precision } from './architecture.js';
import type { Role } from './handles.js';
import type { OptimizerSettings } from './optimizer-settings.js';
import type { BaseSpec, WeightsSpec } from './weights-spec.js';

/** A few facts about a backend. What a recipe asks for beyond them is refused by name before the run. */
export interface Capabilities {
  /** The weights that each role can be opened with; none if the backend lacks the role. */
  readonly roles: Readonly<Record<Role, readonly WeightsSpec['type'][]>>;
  /** The models that adapters can adapt. */
  readonly bases: readonly BaseSpec['type'][];
  /** The precisions of matrix products that a model can be opened with. */
  readonly precisions: readonly Precision[];
  /** Whole models can have an adapter for each agent, and train with them. */
  readonly agentAdapters: boolean;
  readonly losses: readonly LossSpec['type'][];
  readonly optimizers: readonly OptimizerSettings['type'][];
  /**
   * The part of the next token's distribution that training sees: `whole`, so that it knows entropies and log-probs at
   * any temperature, or the log-prob of the `sampled` token at temperature 1.
   */
  readonly distribution: 'whole' | 'sampled';
  /**
   * When norms of gradients are known: `before-update`, with the norm of each call, so that an update can be left
   * out; or `after`, at most the norm of the whole update.
   */
  readonly gradientNorms: 'before-update' | 'after';
  /** Updates keep to `OptimStepSettings.clipNorm`. */
  readonly clipsGradients: boolean;
  /** Several published versions of a policy can be played while it trains on. */
  readonly keepsVersions: boolean;
  /** The place of weights: `here`, read from and written to directories, or `there`, on a server that keeps them. */
  readonly weights: 'here' | 'there';
}

/** The hardware and kernels, as runs record them. */
export interface Hardware {
  readonly kernels: string;
  readonly isa: string;
  /** A notice for people. */
  readonly notice?: string | undefined;
  /** The measured properties of a server that computes. */
  readonly server?: Readonly<Record<string, unknown>>;
}
