import type { LossTerms, PolicyStep } from '../../core/events.js';

/** What an update's loss did beside the policy loss, where it has the term. */
export const LOSS_TERMS = [
  'referenceKl',
  'importanceWeight',
  'importanceBeyond',
  'clippingBias',
] as const satisfies readonly (keyof LossTerms)[];

/** What an update did, averaged over the optimiser's steps; norms are before clipping. */
export interface AgentUpdate extends LossTerms {
  /** Not a number where the backend tells the policy's only, and that is shared. */
  readonly gradientNorm: number;
  readonly loss: number;
  readonly entropy: number;
  readonly clipFraction: number;
  readonly kl: number;
  readonly maxRatioDeviation: number;
  /** Before the first update of the step. */
  readonly logprobGap: number;
  readonly tokens: number;
}

/** The gradient's norm is the largest of the optimiser's steps, so that the one that was skipped shows; not a number if one is not. */
export interface PolicyUpdate extends PolicyStep {
  /** False when a step of the optimiser was dropped. */
  readonly applied: boolean;
  readonly agents: Readonly<Record<string, AgentUpdate>>;
}

/** By policy; a policy without a turn in this step is missing. */
export type Updates = Readonly<Record<string, PolicyUpdate>>;
