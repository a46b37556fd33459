import type { OptimStepResult } from '../../contract/optimizer-settings.js';
import type { Turn } from '../../core/episode.js';
import type { LossTerms, PolicyStep } from '../../core/events.js';
import type { UpdatedTokens } from '../../store/episode-files.js';

/** The terms of a loss beside the policy loss, where it has them. */
export const LOSS_TERMS = [
  'referenceKl',
  'importanceWeight',
  'importanceBeyond',
  'clippingBias',
  'klBaseline',
] as const satisfies readonly (keyof LossTerms)[];

/** The result of an update for one agent, averaged over the optimiser's steps; norms are before clipping. */
export interface AgentUpdate extends LossTerms {
  /** Undefined where the backend tells the policy's only, and that is shared. */
  readonly gradientNorm: number | undefined;
  /** With the other agents of its policy; undefined where it is alone, or a norm is not known. */
  readonly agreement?: number;
  readonly loss: number;
  readonly entropy: number;
  readonly clipFraction: number;
  readonly kl: number;
  readonly maxRatioDeviation: number;
  /** Before the first update of the step. */
  readonly logprobGap: number;
  readonly tokens: number;
}

export interface PolicyUpdate extends Omit<PolicyStep, 'gradientNorm'> {
  /**
   * The largest norm of the optimiser's steps, so that the one that was left out shows; undefined where one was not
   * told.
   */
  readonly gradientNorm: number | undefined;
  /**
   * What became of the optimiser's steps: all of them `applied`; one `skipped`, for its norm was above the limit; or
   * one `dropped`, for its gradient was no number or the backend broke over it.
   */
  readonly outcome: 'applied' | 'skipped' | 'dropped';
  readonly agents: Readonly<Record<string, AgentUpdate>>;
  /** What the last update that used a turn made of its tokens, where the step's episodes are kept. */
  readonly tokens?: ReadonlyMap<Turn, UpdatedTokens>;
}

/** The largest norm of an optimiser's steps; undefined where one of them was not told. */
export function largestNorm(steps: readonly OptimStepResult[]): number | undefined {
  const norms = steps.flatMap(({ norm }) => norm ?? []);
  return norms.length < steps.length ? undefined : Math.max(...norms);
}

export function outcomeOf(steps: readonly OptimStepResult[]): PolicyUpdate['outcome'] {
  const reasons = steps.flatMap((step) => (step.applied ? [] : [step.why]));
  if (reasons.length === 0) return 'applied';
  return reasons.every((why) => why === 'above-limit') ? 'skipped' : 'dropped';
}

/** By policy; a policy without a turn in this step is missing. */
export type Updates = Readonly<Record<string, PolicyUpdate>>;
