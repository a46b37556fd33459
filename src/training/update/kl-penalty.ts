/** The KL penalty: the KL of sampled tokens from a reference, its place in rewards or in the loss, its coefficient. */
import type { Turn } from '../../core/episode.js';
import { mean } from '../../core/statistics.js';
import { type KlTerm, klPenalty } from '../../loss/kl.js';
import type { KlSettings } from '../../recipe/learning.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { PolicyUpdate } from './update-result.js';

/** The most that the KL's distance from its target may count, so that one odd step cannot move the coefficient far. */
const MOST_ERROR = 0.2;

/** The coefficient of every policy with a KL: what a controller may change, and so part of a checkpoint. */
export class KlCoefficients {
  readonly #policies: Recipe['policies'];
  readonly #values: Map<string, number>;

  constructor(policies: Recipe['policies'], state: Readonly<Record<string, number>> = {}) {
    this.#policies = policies;
    this.#values = new Map(Object.entries(state));
  }

  /** Those that a controller has changed, for checkpoints. */
  get state(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#values);
  }

  of(policy: string): number {
    return this.#values.get(policy) ?? this.#policies[policy]?.kl?.coefficient ?? 0;
  }

  /** Takes in the mean KL of a step's turns of a policy. */
  observe(policy: string, kl: number, turns: number): void {
    const controller = this.#policies[policy]?.kl?.controller;
    if (controller === undefined || controller.type === 'fixed' || turns === 0) return;
    this.#values.set(policy, adapted(this.of(policy), kl, turns, controller));
  }
}

type Adaptive = Extract<KlSettings['controller'], { type: 'adaptive' }>;

/**
 * Proportional control of the coefficient in log space: coefficient · (1 + error · turns / horizon) with error = KL /
 * target - 1, at most 0.2 either way (Ziegler et al. 2019, section 2.2; turns are the rows that were seen, as in the
 * Dr. MAS paper's code).
 */
export function adapted(
  coefficient: number,
  kl: number,
  turns: number,
  { target, horizon }: Pick<Adaptive, 'target' | 'horizon'>,
): number {
  const error = Math.min(MOST_ERROR, Math.max(-MOST_ERROR, kl / target - 1));
  return coefficient * (1 + (error * turns) / horizon);
}

/** The KL of each of a turn's response tokens [R], from its log-probs and those of the reference. */
export function tokenKl(
  logprobs: readonly number[],
  referenceLogprobs: Float32Array,
  kind: KlSettings['kind'],
): readonly number[] {
  return klPenalty([logprobs], [referenceLogprobs], kind)[0] ?? [];
}

/** The KL of the response tokens [R] of each turn that a reference scored. */
export function tokenKls(
  { policies }: Recipe,
  references: ReadonlyMap<Turn, Float32Array>,
): ReadonlyMap<Turn, readonly number[]> {
  const kls = new Map<Turn, readonly number[]>();
  for (const [turn, reference] of references) {
    const settings = policies[turn.policy]?.kl;
    if (settings !== undefined) kls.set(turn, tokenKl(turn.logprobs, reference, settings.kind));
  }
  return kls;
}

/** The rewards of response tokens [R] of the policies whose KL penalty is part of the reward. */
export function klRewards(
  { policies }: Recipe,
  coefficients: KlCoefficients,
  kls: ReadonlyMap<Turn, readonly number[]>,
): ReadonlyMap<Turn, readonly number[]> {
  const rewards = new Map<Turn, readonly number[]>();
  for (const [turn, kl] of kls) {
    if (policies[turn.policy]?.kl?.in !== 'reward') continue;
    const coefficient = coefficients.of(turn.policy);
    rewards.set(
      turn,
      kl.map((token) => -coefficient * token),
    );
  }
  return rewards;
}

/** The mean over turns, however long each is, of the mean over a turn's tokens. */
export function meanKl(turns: readonly (readonly number[])[]): number {
  return mean(turns.map(mean));
}

/** The term of a policy's loss, where its KL is one. */
export function klTerm({ policies }: Recipe, coefficients: KlCoefficients, policy: string): { readonly kl?: KlTerm } {
  const settings = policies[policy]?.kl;
  return settings?.in === 'loss' ? { kl: { kind: settings.kind, coefficient: coefficients.of(policy) } } : {};
}

/** An update with the KL of the turns behind it, after which the coefficient may change. */
export function settleKl(
  coefficients: KlCoefficients,
  policy: string,
  update: PolicyUpdate,
  turns: readonly Turn[],
  kls: ReadonlyMap<Turn, readonly number[]>,
): PolicyUpdate {
  const rows = turns.flatMap((turn) => {
    const kl = kls.get(turn);
    return kl === undefined ? [] : [{ agent: turn.agent, kl }];
  });
  if (rows.length === 0) return update;
  const klOf = (some: typeof rows) => meanKl(some.map(({ kl }) => kl));
  const agents = Object.entries(update.agents).map(([name, agent]) => {
    return [name, { ...agent, referenceKl: klOf(rows.filter((row) => row.agent === name)) }] as const;
  });
  const [referenceKl, klCoefficient] = [klOf(rows), coefficients.of(policy)];
  coefficients.observe(policy, referenceKl, rows.length);
  return { ...update, referenceKl, klCoefficient, agents: Object.fromEntries(agents) };
}
