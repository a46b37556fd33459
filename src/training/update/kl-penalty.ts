/** Prices for leaving a reference: the KL of sampled tokens, its place in their rewards, and what moves its coefficient. */
import type { Turn } from '../../core/episode.js';
import { mean } from '../../core/statistics.js';
import { klPenalty } from '../../loss/kl.js';
import type { KlTerm } from '../../loss/loss-spec.js';
import type { KlSettings } from '../../recipe/learning.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { PolicyUpdate } from './update-result.js';

/** The most that the KL's distance from its target may count, so that one odd step cannot move the coefficient far. */
const MOST_ERROR = 0.2;

/** What a session has of all this. */
interface WithKl {
  readonly recipe: Recipe;
  readonly kl: KlCoefficients;
}

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
 * Proportional control of the coefficient in log space: coefficient · (1 + error · turns / horizon) with error = KL / target - 1,
 * at most 0.2 either way (Ziegler et al. 2019, section 2.2; turns are the rows that were seen, as in the Dr. MAS paper's code).
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

/** The mean over turns, however long each is, of the mean over a turn's tokens. */
export function meanKl(turns: readonly (readonly number[])[]): number {
  return mean(turns.map(mean));
}

/** The term of a policy's loss, where its KL is one. */
export function klTerm({ recipe, kl }: WithKl, policy: string): { readonly kl?: KlTerm } {
  const settings = recipe.policies[policy]?.kl;
  return settings?.in === 'loss' ? { kl: { kind: settings.kind, coefficient: kl.of(policy) } } : {};
}

/** An update with the KL of the turns behind it, after which the coefficient may change. */
export function settleKl(
  { recipe, kl }: WithKl,
  policy: string,
  update: PolicyUpdate,
  tokens: ReadonlyMap<Turn, readonly number[]>,
): PolicyUpdate {
  if (recipe.policies[policy]?.kl === undefined) return update;
  const own = [...tokens].filter(([turn]) => turn.policy === policy);
  const klOf = (turns: typeof own) => meanKl(turns.map(([, row]) => row));
  const agents = Object.entries(update.agents).map(([name, agent]) => {
    return [name, { ...agent, referenceKl: klOf(own.filter(([turn]) => turn.agent === name)) }] as const;
  });
  const [referenceKl, klCoefficient] = [klOf(own), kl.of(policy)];
  kl.observe(policy, referenceKl, own.length);
  return { ...update, referenceKl, klCoefficient, agents: Object.fromEntries(agents) };
}
