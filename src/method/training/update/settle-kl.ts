import type { KlTerm } from '@drmas/engine/loss';
import type { Turn } from '@drmas/engine/nouns';
import type { Learner } from '../run/learner.js';
import type { Coefficients, SignalsByTurn } from '../run/signal.js';
import { type KlCoefficients, meanKl } from '../signals/kl-penalty.js';
import type { PolicyUpdate } from './update-result.js';

export function klTerm(learner: Learner, coefficients: Coefficients): { readonly kl?: KlTerm } {
  const { kl } = learner;
  return kl?.in === 'loss' ? { kl: { kind: kl.kind, coefficient: coefficients.of(learner) } } : {};
}

/** Adds to an update the KL of its turns. Then a controller may change the coefficient. */
export function settleKl(
  coefficients: KlCoefficients,
  learner: Learner,
  update: PolicyUpdate,
  turns: readonly Turn[],
  signals: SignalsByTurn,
): PolicyUpdate {
  const rows = turns.flatMap((turn) => {
    const kl = signals.get(turn)?.kl;
    return kl === undefined || kl.length === 0 ? [] : [{ agent: turn.agent, kl }]; // an empty response has no KL
  });
  if (rows.length === 0) return update;
  const klOf = (some: typeof rows) => meanKl(some.map(({ kl }) => kl));
  const agents = Object.entries(update.agents).map(([name, agent]) => {
    const ofAgent = rows.filter((row) => row.agent === name);
    return [name, ofAgent.length === 0 ? agent : { ...agent, referenceKl: klOf(ofAgent) }] as const;
  });
  const [referenceKl, klCoefficient] = [klOf(rows), coefficients.of(learner)];
  coefficients.observe(learner, referenceKl, rows.length);
  return { ...update, referenceKl, klCoefficient, agents: Object.fromEntries(agents) };
}
