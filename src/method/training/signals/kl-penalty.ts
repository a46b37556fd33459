/** The KL penalty: the KL of sampled tokens from a reference, its place in rewards or in the loss, its coefficient. */

import { klPenalty } from '@drmas/engine/loss';
import { mean } from '@drmas/engine/math';
import type { KlSettings } from '../../recipe/learning.js';
import type { Learner } from '../run/learner.js';

/** The largest relative error of the KL that counts, so that one unusual step cannot move the coefficient far. */
const MOST_ERROR = 0.2;
const LEAST_FACTOR = 0.5;

export type Held = Pick<Learner, 'name' | 'kl'>;

/** The coefficients of the policies with a KL penalty. A controller may change them, so checkpoints store them. */
export class KlCoefficients {
  readonly #values: Map<string, number>;

  constructor(state: Readonly<Record<string, number>> = {}) {
    this.#values = new Map(Object.entries(state));
  }

  /** In the order of the names: policies update side by side, so the order of their coefficients is chance. */
  get state(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#values].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** A fixed coefficient is the recipe's, also if a run resumes with it after a controller has changed another. */
  of({ name, kl }: Held): number {
    const changed = kl?.controller?.type === 'fixed' ? undefined : this.#values.get(name);
    return changed ?? kl?.coefficient ?? 0;
  }

  observe(learner: Held, kl: number, turns: number): void {
    const controller = learner.kl?.controller;
    if (controller === undefined || controller.type === 'fixed' || turns === 0) return;
    this.#values.set(learner.name, adapted(this.of(learner), kl, turns, controller));
  }
}

type Adaptive = Extract<KlSettings['controller'], { type: 'adaptive' }>;

/**
 * Proportional control of the coefficient in log space: coefficient · (1 + error · turns / horizon), with error = KL /
 * target - 1, limited to ±0.2 (Ziegler et al. 2019, section 2.2). Turns are the rows of the step, as in the Dr. MAS
 * paper's code. That code's factor is below 0 if a step has more than five times as many turns as the horizon; here a
 * step at most halves the coefficient.
 */
export function adapted(
  coefficient: number,
  kl: number,
  turns: number,
  { target, horizon }: Pick<Adaptive, 'target' | 'horizon'>,
): number {
  const error = Math.min(MOST_ERROR, Math.max(-MOST_ERROR, kl / target - 1));
  return coefficient * Math.max(LEAST_FACTOR, 1 + (error * turns) / horizon);
}

/** The KL of each of a turn's response tokens [R], from its log-probs and the reference's. */
export function tokenKl(
  logprobs: readonly number[],
  referenceLogprobs: Float32Array,
  kind: KlSettings['kind'],
): readonly number[] {
  return klPenalty([logprobs], [referenceLogprobs], kind)[0] ?? [];
}

/** The mean over turns of the mean over a turn's tokens. Each turn counts once, independent of its length. */
export function meanKl(turns: readonly (readonly number[])[]): number {
  return mean(turns.map(mean));
}
