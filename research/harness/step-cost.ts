/** The cost of a shared mean in steps, and whether a probe can predict it: research/plans/hint.md. */
import { mean, median } from '@drmas/engine/math';
import { PartResults, predictionOf, scoreAt } from './analysis.js';
import type { Part, Regime, Variant } from './declaration.js';
import type { ProbeResult, Results } from './stored-result.js';

/** The least rise of the quick estimator, as a share, for which a team has a cost. */
const LEAST_RISE = 0.05;
export const NEAREST = 9;

/** The steps of the slow estimator over those of the quick one; if it never got there, the least that they can be. */
export interface Cost {
  readonly ratio: number;
  readonly isCensored: boolean;
}

/** Measurements of a team by a probe. */
interface Seen {
  /** 1 / own share - 1 */
  readonly own: number;
  /** (agent's mean - team's success)^2 / variance of the agent's rewards */
  readonly distance: number;
}

export interface Team {
  readonly name: string;
  readonly rate: number;
  readonly seen: Seen;
  readonly cost: Cost;
}

export const PREDICTORS = {
  own: ({ seen }: Team) => seen.own,
  distance: ({ seen }: Team) => seen.distance,
  'own x rate': ({ seen, rate }: Team) => (seen.own * rate) / USUAL_RATE,
  'distance x rate': ({ seen, rate }: Team) => (seen.distance * rate) / USUAL_RATE,
} as const;
export type Predictor = keyof typeof PREDICTORS;
const USUAL_RATE = 1e-3;
/** The values of `own` and `distance` above which the hint flags a team: an own share of one half. */
const FLAGGED = 1;
export const isFlagged = ({ seen }: Team, by: Predictor) => (by.startsWith('own') ? seen.own : seen.distance) > FLAGGED;

interface Point {
  readonly step: number;
  readonly score: number;
}

/** The step at which a curve first reaches a level, on straight lines between its points. */
function stepAt(curve: readonly Point[], level: number): number | undefined {
  const i = curve.findIndex(({ score }) => score >= level);
  const [before, after] = [curve[i - 1], curve[i]];
  if (after === undefined || before === undefined) return after?.step;
  return before.step + ((level - before.score) / (after.score - before.score)) * (after.step - before.step);
}

/** @param rise The share of the quick curve's rise at which the steps are compared */
export function costOf(slow: readonly Point[], quick: readonly Point[], rise = 0.5): Cost | undefined {
  const start = quick[0]?.score ?? Number.NaN;
  const top = Math.max(...quick.map(({ score }) => score));
  if (!(top - start >= LEAST_RISE)) return undefined;
  const level = start + rise * (top - start);
  const [late, early] = [stepAt(slow, level), stepAt(quick, level) as number];
  return { ratio: (late ?? slow.at(-1)?.step ?? Number.NaN) / early, isCensored: late === undefined };
}

function meanCurve(of: PartResults, regime: Regime, variant: Variant): Point[] {
  const runs = of.runs(regime, variant);
  return (runs[0]?.curve ?? []).map(({ step }, i) => ({
    step,
    score: mean(runs.map(({ curve }) => scoreAt(regime, curve[i] ?? { step, team: Number.NaN }))),
  }));
}

/** The mean over a team's probes. */
function seenIn(part: Part, regime: Regime, results: Results): Seen {
  const of = new PartResults(part, results);
  const probes = (part.probeSeeds ?? part.seeds).flatMap((seed) => of.probe(regime, seed) ?? []);
  const distance = ({ success, agents }: ProbeResult) => {
    const { reward = Number.NaN, rewardStd = Number.NaN } = agents[regime.agent] ?? {};
    return (reward - success) ** 2 / rewardStd ** 2;
  };
  const share = mean(probes.map((probe) => predictionOf(regime.agent, probe).ownShare));
  return { own: 1 / share - 1, distance: mean(probes.map(distance)) };
}

/** The measurements of a regime by its probes. @throws Error if the part has no such regime */
export function seenOf(part: Part, name: string, results: Results): Seen {
  const regime = part.regimes.find((one) => one.id === name);
  if (regime === undefined) throw new Error(`there is no regime ${name} in ${part.id}`);
  return seenIn(part, regime, results);
}

/** The teams of some parts, each once, without those in which Dr. MAS does not rise. */
export function teamsOf(
  parts: readonly Part[],
  results: Results,
  rise?: number,
  [slow, quick]: readonly [string, string] = ['grpo', 'drmas'],
): Team[] {
  const names = new Set<string>();
  return parts.flatMap((part) =>
    part.regimes.flatMap((regime): Team[] => {
      if (names.has(regime.id)) return [];
      names.add(regime.id);
      const of = new PartResults(part, results);
      const curveOf = (id: string) => meanCurve(of, regime, of.variant(id));
      const cost = costOf(curveOf(slow), curveOf(quick), rise);
      const { learningRate: rate = USUAL_RATE } = regime;
      return cost === undefined ? [] : [{ name: regime.id, rate, seen: seenIn(part, regime, results), cost }];
    }),
  );
}

/** A cost as a number; infinite if it is censored, so that it counts as larger than all others. */
export const sizeOf = ({ ratio, isCensored }: Cost) => (isCensored ? Number.POSITIVE_INFINITY : ratio);

export interface Interval {
  readonly low: number;
  readonly middle: number;
  readonly high: number;
}

/** The costs of the nine teams nearest in the rank of the predictor: lowest, median, highest. */
export function predictedCost(team: Team, others: readonly Team[], by: Predictor): Interval {
  const value = PREDICTORS[by];
  const rank = (one: Team) => others.filter((other) => value(other) < value(one)).length;
  const here = rank(team);
  const near = others.toSorted((a, b) => Math.abs(rank(a) - here) - Math.abs(rank(b) - here)).slice(0, NEAREST);
  const costs = near.map(({ cost }) => sizeOf(cost)).sort((a, b) => a - b);
  return { low: costs[0] as number, middle: median(costs), high: costs.at(-1) as number };
}

export const isCovered = ({ ratio, isCensored }: Cost, { low, high }: Interval) =>
  isCensored ? high === Number.POSITIVE_INFINITY : low <= ratio && ratio <= high;
