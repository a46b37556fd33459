import type { OptimStepResult } from '@drmas/engine/contract';
import type { AgentStep, LossTerms, PolicyStep } from '@drmas/engine/events';
import { largest } from '@drmas/engine/math';
import type { Turn } from '@drmas/engine/nouns';
import type { UpdatedTokens } from '../../store/episode-files.js';

export const LOSS_TERMS = [
  'referenceKl',
  'importanceWeight',
  'importanceBeyond',
] as const satisfies readonly (keyof LossTerms)[];

/**
 * The result of a step's update for one agent. Norms are before clipping, and means over the optimiser's steps. Metrics
 * are over the tokens that the mini-batches measured, and absent if there are none.
 */
export interface AgentUpdate
  extends LossTerms,
    Pick<AgentStep, 'agreement' | 'loss' | 'entropy' | 'clipFraction' | 'kl' | 'maxRatioDeviation' | 'logprobGap'> {
  /** Undefined if the backend reports only the policy's norm, and several agents share the policy. */
  readonly gradientNorm: number | undefined;
  readonly tokens: number;
  readonly lossMetrics?: Readonly<Record<string, number>>;
}

export interface PolicyUpdate extends Omit<PolicyStep, 'gradientNorm'> {
  /**
   * The largest norm of the optimiser's steps, so that a skipped step shows. Undefined if a norm was not reported.
   */
  readonly gradientNorm: number | undefined;
  /**
   * The result of the optimiser's steps: all `applied`; one `skipped`, because its norm was above the limit; or one
   * `dropped`, because its gradient was not a number or the backend failed.
   */
  readonly outcome: 'applied' | 'skipped' | 'dropped';
  readonly agents: Readonly<Record<string, AgentUpdate>>;
  /** The ratios of a turn's tokens in the last update that used it, if the step's episodes are written to disk. */
  readonly tokens?: ReadonlyMap<Turn, UpdatedTokens>;
}

export function largestNorm(steps: readonly OptimStepResult[]): number | undefined {
  const norms = steps.flatMap(({ norm }) => norm ?? []);
  return norms.length < steps.length ? undefined : largest(norms);
}

export function outcomeOf(steps: readonly OptimStepResult[]): PolicyUpdate['outcome'] {
  const reasons = steps.flatMap((step) => (step.applied ? [] : [step.why]));
  if (reasons.length === 0) return 'applied';
  return reasons.every((why) => why === 'above-limit') ? 'skipped' : 'dropped';
}

/** By policy. A policy without a turn in this step is missing. */
export type Updates = Readonly<Record<string, PolicyUpdate>>;
