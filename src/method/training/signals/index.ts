/** Every signal. A new signal is one file and one row here. */

import type { Turn } from '@drmas/engine/nouns';
import type { OpenEstimator } from '../../advantage/define-estimator.js';
import type { Playing } from '../run/run-state.js';
import type {
  Coefficients,
  ExtraRollouts,
  LearnerTurns,
  PlayedGroups,
  Signal,
  SignalSettings,
  SignalsByTurn,
  TurnSignals,
} from '../run/signal.js';
import { branches } from './branches.js';
import { criticValues } from './critic-values.js';
import { greedyBaselines } from './greedy-baselines.js';
import { referenceKl } from './reference-kl.js';

/** All signals, in the order in which they are played, scored and checked. */
export const signals: readonly Signal[] = [greedyBaselines, branches, referenceKl, criticValues];

export function wantedSignals(settings: SignalSettings, all: readonly Signal[] = signals): Signal[] {
  return all.filter((signal) => signal.wanted?.(settings) ?? signal.name === settings.estimator.traits.needs);
}

export async function playSignals(
  run: Playing & { readonly estimator: OpenEstimator; readonly signals: readonly Signal[] },
  played: PlayedGroups,
): Promise<ExtraRollouts> {
  const all: ExtraRollouts[] = [];
  for (const signal of run.signals) if (signal.play !== undefined) all.push(await signal.play(run, played));
  const fault = all.find((each) => each.fault !== undefined)?.fault;
  return {
    episodes: all.flatMap(({ episodes }) => episodes),
    byTurn: together(all.map(({ byTurn }) => byTurn)),
    ...(fault === undefined ? {} : { fault }),
  };
}

export async function scoreSignals(
  wanted: readonly Signal[],
  turns: readonly LearnerTurns[],
  coefficients: Coefficients,
  { byTurn }: ExtraRollouts,
): Promise<SignalsByTurn> {
  const scored = await Promise.all(wanted.map(async (signal) => signal.score?.(turns, coefficients) ?? new Map()));
  return together([byTurn, ...scored]);
}

/** Joins the signals of all maps. If two maps have the same field of a turn, the later map wins. */
export function together(all: readonly SignalsByTurn[]): SignalsByTurn {
  const joined = new Map<Turn, TurnSignals>();
  for (const each of all)
    for (const [turn, byTurn] of each) {
      const before = joined.get(turn);
      joined.set(turn, {
        ...before,
        ...byTurn,
        ...(before?.signals && byTurn.signals && { signals: { ...before.signals, ...byTurn.signals } }),
      });
    }
  return joined;
}
