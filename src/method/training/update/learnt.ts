import type { StepAdvantages } from '../advantages/advantages.js';
import type { LearnerTurns } from '../run/signal.js';
import type { Updates } from './update-result.js';

/** The result of learning from a step. */
export interface Learnt {
  /** The turns that each policy learnt from. A policy without a turn has an empty list. */
  readonly turns: readonly LearnerTurns[];
  readonly advantages: StepAdvantages;
  /** The measured inflation by agent. Empty unless the recipe measures it in this step. */
  readonly measured: Readonly<Record<string, number>>;
  readonly updates: Updates;
  readonly seconds: { readonly advantage: number; readonly update: number };
}
