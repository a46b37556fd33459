/** What else is known of a step's turns before they are compared: greedy episodes, what models beside the policies say. */
import type { Turn } from '../../core/episode.js';
import type { Session } from '../session.js';
import { valuesOf } from '../update/critics.js';
import { tokenKl } from '../update/kl-penalty.js';
import { referenceLogprobs } from '../update/references.js';
import type { TurnExtras } from './advantages.js';
import { baselines } from './greedy-baselines.js';
import type { Played } from './rollout-step.js';

export interface Appraisal {
  /** What estimators may need. */
  readonly extras: TurnExtras;
  /** What critics expect of each response token [R], where the estimator uses them. */
  readonly values: ReadonlyMap<Turn, Float32Array>;
  /** Log-probs of a turn's response under what its policy is held near [R], where the KL is a term of its loss. */
  readonly referenceLogprobs: ReadonlyMap<Turn, Float32Array>;
  /** The KL of those tokens [R], by the estimator of the turn's policy. */
  readonly kl: ReadonlyMap<Turn, readonly number[]>;
}

/** Asks greedy episodes, references and critics, and takes the price of leaving them off the rewards of tokens where a recipe says so. */
export async function appraise(
  session: Pick<Session, 'recipe' | 'backend' | 'kl'>,
  { kept, greedy }: Pick<Played, 'kept' | 'greedy'>,
): Promise<Appraisal> {
  const { recipe } = session;
  const turns = kept.flatMap(({ episodes }) => episodes).flatMap((episode) => episode.turns);
  const [references, values] = await Promise.all([referenceLogprobs(session, turns), valuesOf(session, turns)]);
  const kl = new Map<Turn, readonly number[]>();
  const inLoss = new Map<Turn, Float32Array>();
  const extras = new Map(baselines(kept, greedy));
  for (const [turn, reference] of references) {
    const settings = recipe.policies[turn.policy]?.kl;
    if (settings === undefined) continue;
    const tokens = tokenKl(turn.logprobs, reference, settings.kind);
    kl.set(turn, tokens);
    const coefficient = session.kl.of(turn.policy);
    if (settings.in === 'loss') inLoss.set(turn, reference);
    else extras.set(turn, { ...extras.get(turn), tokenRewards: tokens.map((token) => -coefficient * token) });
  }
  for (const [turn, own] of values) extras.set(turn, { ...extras.get(turn), values: Array.from(own) });
  return { extras, values, referenceLogprobs: inLoss, kl };
}
