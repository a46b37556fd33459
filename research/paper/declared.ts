/** The predictions of plans beside the results of their runs: a row of the paper's table for each prediction. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mean } from '@drmas/engine/math';
import { type Cells, levelComparisons, trainingGains } from '../creditbench/page.js';
import { CANDIDATES, cellsOfDefault, verdictsOf } from '../defaults/rule.js';
import {
  type Comparison,
  compare,
  curveScore,
  LARGEST_P,
  lastScore,
  PartResults,
  slopeOnDose,
} from '../harness/analysis.js';
import { blindPredictions, isTrusted } from '../harness/blind.js';
import type { OwnRates, Part, Question } from '../harness/declaration.js';
import { slopeOnOverlap } from '../harness/mechanism.js';
import { type Claim, claimsOf, differenceAt } from '../harness/own-rates.js';
import { holm } from '../harness/p-values.js';
import { JOINED } from '../harness/plan-dates.js';
import { collapsesOf, hasCollapsed, neverRose } from '../harness/stability.js';
import type { Results } from '../harness/stored-result.js';
import { differs, exactText, points } from '../harness/text.js';
import { type RateRatio, type Sooner, soonerOf, wholeRatios } from '../harness/waiting.js';
import { doneIn } from '../harness/work-through.js';
import { tabular, texOf } from './tex.js';

/** All that is stored, by the names that plans use. */
export interface Stored {
  readonly root: string;
  readonly questions: readonly Question[];
  readonly results: Results;
  readonly cells: Cells;
}

interface Outcome {
  /** In Markdown, as is `found`. */
  readonly predicted: string;
  readonly found: string;
  readonly verdict: string;
}

interface Plan {
  /** The name of its file in research/plans. */
  readonly name: string;
  readonly outcomes: (stored: Stored) => readonly Outcome[];
}

/** The plans of which only copies came before the results in the history: docs/research/findings-plan.md. */
const COPIED: readonly string[] = ['blind', 'losses', 'size'];

// The pieces of which the outcomes are made.

export function partOf({ questions }: Stored, id: string): Part {
  const part = questions.flatMap(({ parts }) => parts).find((one) => one.id === id);
  if (part === undefined) throw new Error(`there is no part ${id}`);
  return part;
}
export const resultsOf = (stored: Stored, id: string) => new PartResults(partOf(stored, id), stored.results);

/** The difference of two variants in a regime of a part. */
function difference(
  stored: Stored,
  id: string,
  [variant, other]: readonly [string, string],
  score: typeof lastScore = lastScore,
  regime = partOf(stored, id).regimes[0]?.id,
): Comparison {
  const part = partOf(stored, id);
  const where = part.regimes.find((one) => one.id === regime);
  if (where === undefined) throw new Error(`there is no regime ${regime} in ${id}`);
  const of = resultsOf(stored, id).against(other);
  return of.comparison(where, of.variant(variant), score);
}

/** Each variant minus the baseline in the first regime of a part, with p by Holm over them. */
export function rankedIn(stored: Stored, id: string, score = curveScore) {
  const of = resultsOf(stored, id);
  const [regime] = of.part.regimes;
  if (regime === undefined) throw new Error(`${id} has no regime`);
  const others = of.part.variants.filter((variant) => variant !== of.baseline);
  const compared = others.map((variant) => ({ id: variant.id, gain: of.comparison(regime, variant, score) }));
  const adjusted = holm(compared.map(({ gain }) => gain.p));
  return compared.map((one, i) => {
    const p = adjusted[i] ?? 1;
    return { ...one, p, shown: p > LARGEST_P ? 'no difference shown' : differs(one.gain) };
  });
}

/** Each estimator minus Dr. MAS over the families of CreditBench, by its name, with p by Holm over them. */
export function creditRanks({ cells }: Pick<Stored, 'cells'>) {
  const all = trainingGains(cells, 'drmas').map(({ estimator, gains }) => [estimator, compare(gains)] as const);
  const adjusted = holm(all.map(([, gain]) => gain.p));
  return new Map(all.map(([estimator, gain], i) => [estimator, { gain, p: adjusted[i] ?? 1 }]));
}

export const estimatorOf = (id: string): string => id.replace(/-at-[\d.e-]+$/, '');

/** A difference with its interval, without words. */
export const shortText = ({ mean: centre, interval }: Comparison): string =>
  `${points(centre)}${interval === undefined ? '' : ` [${points(interval.low)}, ${points(interval.high)}]`}`;

const UNDECIDED = 'not decided';
const held = (isTrue: boolean) => (isTrue ? 'held' : '**failed**');
const within = ({ mean: centre }: Comparison, most: number) => 100 * Math.abs(centre) <= most;
const listed = (texts: readonly string[]) => texts.join(', ');

/** The stored lines of a file of results that no question reads; undefined without the file. */
function linesOf<Line>({ root }: Stored, name: string): Line[] | undefined {
  const path = join(root, 'research/results', `${name}.jsonl`);
  if (!existsSync(path)) return undefined;
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Line);
}

/** The outcome of a plan whose runs are not all there; undefined if they are. */
function unfinished(stored: Stored, ids: readonly string[], predicted: string): Outcome[] | undefined {
  const done = ids.map((id) => doneIn(partOf(stored, id), stored.results));
  const [there, declared] = [done.reduce((n, one) => n + one.there, 0), done.reduce((n, one) => n + one.declared, 0)];
  if (there === declared) return undefined;
  return [{ predicted, found: `${there} of ${declared} runs are stored`, verdict: there === 0 ? 'not run' : 'open' }];
}

/** The estimators of the league whose mean has the other agents in it. */
export const SHARED_IN_LEAGUE: readonly string[] = [
  ...['grpo', 'grpo-refilled', 'grpo-entropy', 'grpo-kl', 'grpo-turn', 'dr-grpo', 'rloo'],
  ...['reinforce++', 'reinforce++-baseline', 'maxrl'],
];
const SHARED_IN_TUNED: readonly string[] = ['grpo', 'grpo-entropy', 'grpo-kl', 'grpo-turn', 'reinforce++'];
const NOT_PREDICTED = 'gae';

/** The seeds of an arm minus the seeds of another; each seed is the mean over its lines. */
function armsApart<Line extends { readonly arm: string; readonly seed: number }>(
  lines: readonly Line[],
  [arm, other]: readonly [string, string],
  score: (line: Line) => number,
): Comparison {
  const at = (name: string, seed: number) =>
    mean(lines.filter((line) => line.arm === name && line.seed === seed).map(score));
  return compare([...new Set(lines.map(({ seed }) => seed))].map((seed) => at(arm, seed) - at(other, seed)));
}

// The plans, in the order of their dates.

const words: Plan = {
  name: 'words',
  outcomes(stored) {
    const ranked = rankedIn(stored, 'words-pairs', lastScore).find(({ id }) => estimatorOf(id) === 'drmas');
    if (ranked === undefined) throw new Error('words has no drmas');
    const { gain, p } = ranked;
    return [
      {
        predicted: '(a claim) On a pretrained model `drmas` ends above `grpo`',
        found: `${shortText(gain)}, p by Holm ${exactText(p)}`,
        verdict: gain.verdict === 'higher' ? (p > LARGEST_P ? 'shown, not by Holm' : 'shown') : 'not shown',
      },
    ];
  },
};

const league: Plan = {
  name: 'league',
  outcomes(stored) {
    const all = rankedIn(stored, 'league-pairs').map((one) => ({ ...one, id: estimatorOf(one.id) }));
    const foreign = all.filter(({ id }) => SHARED_IN_LEAGUE.includes(id) || id === 'rejection');
    const behind = foreign.filter(({ shown }) => shown === 'lower').length;
    const own = all.filter(({ id }) => !foreign.some((one) => one.id === id) && id !== NOT_PREDICTED);
    const last = Math.min(...own.map(({ gain }) => gain.mean));
    return [
      {
        predicted: `All ${foreign.length} estimators without own statistics are behind \`drmas\`, each at its rate`,
        found: `${behind} of ${foreign.length} are`,
        verdict: held(behind === foreign.length),
      },
      {
        predicted: 'None with own statistics but `gae` is behind by more than 10 points',
        found: `the last one: ${points(last)}`,
        verdict: held(100 * last >= -10),
      },
    ];
  },
};

const smallGroups: Plan = {
  name: 'small-groups',
  outcomes(stored) {
    const compared = ['zero-1', 'zero-2'].flatMap((regime) =>
      ['drmas-singleton-batch', 'drmas-singleton-raw'].map((variant) => ({
        variant,
        gain: difference(stored, 'singletons', [variant, partOf(stored, 'singletons').baseline], lastScore, regime),
      })),
    );
    const adjusted = holm(compared.map(({ gain }) => gain.p));
    const batch = compared.flatMap(({ variant, gain }, i) =>
      variant.endsWith('batch') ? [{ gain, p: adjusted[i] ?? 1 }] : [],
    );
    const passes = batch.every(({ gain, p }) => p <= LARGEST_P && gain.mean > 0);
    return [
      {
        predicted: '(a rule) A rule for lone turns is the default if it is ahead in two regimes',
        found: `\`batch\`: ${listed(batch.map(({ gain }) => points(gain.mean)))}, equal to the bit`,
        verdict: passes ? 'met' : 'not met',
      },
    ];
  },
};

const baseline: Plan = {
  name: 'baseline',
  outcomes({ cells }) {
    const all = levelComparisons(cells);
    const zero = all.filter(({ other }) => other === 'constant,baseline=0');
    const episodes = all.filter(({ other }) => other !== 'constant,baseline=0');
    const [first, last] = [zero[0], zero.at(-1)];
    if (first === undefined || last === undefined || episodes[0] === undefined) return [];
    return [
      {
        predicted: "At a start of 1/12 own mean and 0 do not differ, both are above the episodes' mean",
        found: `own minus episodes': p by Holm ${exactText(episodes[0].adjusted)}`,
        verdict: held(first.verdict === 'no difference shown' && episodes[0].verdict === 'higher'),
      },
      {
        predicted: 'At a start of 9/12 the own mean is above 0',
        found: `own minus 0: ${shortText(compare(last.gains))}`,
        verdict: held(last.verdict === 'higher'),
      },
    ];
  },
};

const creditbench: Plan = {
  name: 'creditbench',
  outcomes({ cells }) {
    const all = trainingGains(cells, 'grpo').map(({ estimator, gains }) => ({ estimator, gain: compare(gains) }));
    const ahead = all.filter(({ gain }) => (gain.interval?.low ?? 0) > 0).length;
    return [
      {
        predicted: '(a ranking) Estimators minus `grpo`, mean of eight families',
        found: `${ahead} of ${all.length} are above \`grpo\``,
        verdict: 'no prediction',
      },
    ];
  },
};

const lemma: Plan = {
  name: 'lemma',
  outcomes: () => [
    { predicted: '(a measurement) The factor of equation (1) in gradients', found: 'three seeds', verdict: 'no claim' },
  ],
};

const blind: Plan = {
  name: 'blind',
  outcomes(stored) {
    const part = partOf(stored, 'blind-pairs');
    const found = blindPredictions(part, stored.results);
    if (found === undefined) return [];
    const finds = found.atHalf;
    const { ownShare, inflation, lowest, highest } = found;
    const share = ({ gaining, of }: { gaining: number; of: number }) => gaining / of;
    const area = ({ area: value, interval }: typeof ownShare) =>
      `${value.toFixed(2)} [${interval.map((end) => end.toFixed(2)).join(', ')}]`;
    return [
      {
        predicted: 'The AUC of the own share is at least .8',
        found: area(ownShare),
        verdict: held(ownShare.area >= 0.8),
      },
      {
        predicted: "The interval of the inflation's AUC holds .5",
        found: area(inflation),
        verdict: held(inflation.interval[0] <= 0.5 && inflation.interval[1] >= 0.5),
      },
      {
        predicted: 'In the lowest two fifths of the share at least .8 gain, in the highest at most .2',
        found: `${lowest.gaining} of ${lowest.of}, ${highest.gaining} of ${highest.of}`,
        verdict: held(share(lowest) >= 0.8 && share(highest) <= 0.2),
      },
      {
        predicted: '(a rule) The probe says *will* if it finds .8 of the gains and is silent in .8 of the others',
        found: `${finds.found} of ${finds.gaining}, ${finds.silent} of ${finds.others}`,
        verdict: isTrusted(part, stored.results) ? 'met' : 'not met',
      },
    ];
  },
};

const catchUp: Plan = {
  name: 'catch-up',
  outcomes(stored) {
    const ids = ['catch-up-1', 'catch-up-4', 'catch-up-16'];
    const [one, four, sixteen] = soonerOf(
      ids.map((id) => resultsOf(stored, id)),
      'grpo',
      'drmas',
    ) as [Sooner, Sooner, Sooner];
    return [
      {
        predicted: 'With 16 and with 64 tasks `grpo` reaches 90 % in at least seven of eight runs',
        found: listed([four, sixteen].map(({ late }) => `${late.reached} of ${late.steps.length}`)),
        verdict: held(four.catchesUp && sixteen.catchesUp),
      },
      {
        predicted: 'At the best rates it needs at least twice the steps with 4 and with 16 tasks',
        found: listed([one, four].map(({ ratio }) => `${ratio.toFixed(1)} times`)),
        verdict: held(one.ratio >= 2 && four.ratio >= 2),
      },
      {
        predicted: 'The ratio is smaller with 64 tasks than with 4',
        found: `${sixteen.ratio.toFixed(1)} and ${one.ratio.toFixed(1)}`,
        verdict: held(sixteen.ratio < one.ratio),
      },
    ];
  },
};

const size: Plan = {
  name: 'size',
  outcomes(stored) {
    const of = resultsOf(stored, 'size-pairs');
    const drmas = of.variant('drmas');
    const gains = of.part.regimes.map((regime) => of.comparison(regime, drmas, curveScore));
    const least = Math.min(...gains.map(({ mean: centre }) => centre));
    const slope = slopeOnDose(of, of.part.regimes, drmas);
    return [
      {
        predicted: 'In each of five sizes `drmas` is ahead by at least 10 points',
        found: `the least: ${points(least)}`,
        verdict: held(100 * least >= 10),
      },
      {
        predicted: '(a rule) The harm shrinks with size if the slope a doubling lies below 0',
        found: shortText(slope),
        verdict: (slope.interval?.high ?? 0) < 0 ? 'met' : 'not met',
      },
    ];
  },
};

const losses: Plan = {
  name: 'losses',
  outcomes(stored) {
    const chosen = rankedIn(stored, 'losses-pairs').filter(({ id }) => /^(turn-ppo|cispo)-at/.test(id));
    return [
      {
        predicted: '`turn-ppo` and `cispo` are within 10 points of `ppo-clip`',
        found: listed(chosen.map(({ gain }) => points(gain.mean))),
        verdict: held(chosen.every(({ gain }) => within(gain, 10))),
      },
    ];
  },
};

const mechanism: Plan = {
  name: 'mechanism',
  outcomes(stored) {
    const of = resultsOf(stored, 'mechanism-pairs');
    const compared = of.part.regimes.map((regime) => ({
      id: regime.id,
      gain: of.comparison(regime, of.variant('drmas'), curveScore),
    }));
    const decoders = compared.filter(({ id }) => !id.endsWith('table')).map(({ gain }) => gain.mean);
    const tableGain = compared.find(({ id }) => id.endsWith('table'))?.gain;
    const slope = slopeOnOverlap(of);
    if (tableGain === undefined || slope === undefined) return [];
    return [
      {
        predicted: 'No harm in a table: the interval of the gain lies below +10 points',
        found: shortText(tableGain),
        verdict: held(100 * (tableGain.interval?.high ?? Number.NaN) < 10),
      },
      {
        predicted: 'A gain of at least 10 points in each decoder',
        found: `the least: ${points(Math.min(...decoders))}`,
        verdict: held(100 * Math.min(...decoders) >= 10),
      },
      {
        predicted: 'The gain grows with the overlap of contexts',
        found: `slope ${shortText(slope)}`,
        verdict: held((slope.interval?.low ?? 0) > 0),
      },
      {
        predicted: 'The signal-to-noise of the gradient is lower under `grpo`',
        found: 'the measurement was void',
        verdict: 'not measured',
      },
    ];
  },
};

const paper: Plan = {
  name: 'paper',
  outcomes(stored) {
    const math = (['', '-shared'] as const).map((sharing) =>
      difference(stored, 'paper-math-pairs', [`drmas${sharing}`, `grpo${sharing}`]),
    );
    const search = difference(stored, 'paper-search-pairs', ['drmas', 'grpo']);
    const meanAlone = difference(stored, 'paper-search-pairs', ['drmas-mean', 'drmas']);
    const gigpo = difference(stored, 'paper-observations', ['gigpo-by-agent', 'gigpo']);
    return [
      {
        predicted: 'In mathematics both are within 5 points, with separate and with shared policies',
        found: listed(math.map(({ mean: centre }) => points(centre))),
        verdict: held(math.every((gain) => within(gain, 5))),
      },
      {
        predicted: 'In search `drmas` is above `grpo`',
        found: shortText(search),
        verdict: held(search.verdict === 'higher'),
      },
      {
        predicted: '`drmas-mean` ends within 5 points of `drmas`',
        found: points(meanAlone.mean),
        verdict: held(within(meanAlone, 5)),
      },
      {
        predicted: '`gigpo` by agent is above `gigpo`',
        found: shortText(gigpo),
        verdict: held(gigpo.verdict === 'higher'),
      },
    ];
  },
};

const sums: Plan = {
  name: 'sums',
  outcomes(stored) {
    const of = resultsOf(stored, 'sums-pairs');
    const [regime] = of.part.regimes;
    if (regime === undefined) throw new Error('sums has no regime');
    const ends = of.part.variants.map((variant) => mean(of.runs(regime, variant).map((run) => lastScore(regime, run))));
    const supervised = of.part.variants.find(({ id }) => id.startsWith('supervised'))?.id ?? '';
    const behind = difference(stored, 'sums-pairs', [of.baseline.id, supervised]);
    return [
      {
        predicted: 'Rewards, own right answers and demonstrations all end above 60 %',
        found: `the lowest: ${(100 * Math.min(...ends)).toFixed(1)} %`,
        verdict: held(Math.min(...ends) > 0.6),
      },
      {
        predicted: '`grpo` is behind demonstrations by at most 10 points',
        found: shortText(behind),
        verdict: held(100 * behind.mean >= -10),
      },
    ];
  },
};

const tuned: Plan = {
  name: 'tuned',
  outcomes(stored) {
    const all = rankedIn(stored, 'tuned-pairs').map((one) => ({ ...one, id: estimatorOf(one.id) }));
    const shared = all.filter(({ id }) => SHARED_IN_TUNED.includes(id));
    const nearest = Math.max(...shared.map(({ gain }) => gain.mean));
    const alike = (name: string): Outcome => {
      const gain = all.find(({ id }) => id === name)?.gain as Comparison;
      return {
        predicted: `\`${name}\` is within 10 points of \`drmas\``,
        found: shortText(gain),
        verdict: held(within(gain, 10)),
      };
    };
    return [
      {
        predicted: `${shared.length} estimators with a mean of all agents are behind by at least 10 points`,
        found: `the nearest: ${points(nearest)}`,
        verdict: held(100 * nearest <= -10),
      },
      alike('rloo-by-agent'),
      alike('ema'),
    ];
  },
};

const collapse: Plan = {
  name: 'collapse',
  outcomes(stored) {
    const cells = collapsesOf(['collapse-escalation', 'collapse-repair'].map((id) => resultsOf(stored, id)));
    const fewer = cells.filter(({ underDrmas }) => underDrmas === 'fewer').length;
    const ofGrpo = cells.flatMap(({ regime, pairs }) => pairs.map(({ grpo }) => neverRose(regime, grpo)));
    const stuck = ofGrpo.filter(Boolean).length;
    const fastest = collapsesOf([resultsOf(stored, 'collapse-repair')]).at(-1);
    const fallen = fastest?.pairs.map(({ drmas }) => hasCollapsed(fastest.regime, drmas)) ?? [];
    const collapsed = fallen.filter(Boolean).length;
    return [
      {
        predicted: 'At rates that are too high, no cell shows fewer collapses under `drmas`',
        found: `${fewer} of ${cells.length} cells show fewer`,
        verdict: held(fewer === 0),
      },
      {
        predicted: 'Most runs of `grpo` at these rates never rise',
        found: `${stuck} of ${ofGrpo.length}`,
        verdict: held(2 * stuck > ofGrpo.length),
      },
      {
        predicted: 'At 8 times the rate `drmas` collapses in at least half of its runs on `repair`',
        found: `${collapsed} of ${fallen.length}`,
        verdict: held(2 * collapsed >= fallen.length),
      },
    ];
  },
};

const trunk: Plan = {
  name: 'trunk',
  outcomes(stored) {
    const all = rankedIn(stored, 'trunk-pairs');
    const behind = all.filter(({ shown }) => shown === 'lower').length;
    return [
      {
        predicted: 'A trunk that all agents train is ahead of three other ways of sharing',
        found: `ahead of ${behind} of ${all.length}`,
        verdict: held(behind === all.length),
      },
    ];
  },
};

const catchUpRepair: Plan = {
  name: 'catch-up-repair',
  outcomes(stored) {
    const learns = 'With more steps `grpo` learns the fixer of `repair` at 3e-4';
    const open = unfinished(stored, ['repair-timed'], learns);
    if (open !== undefined) return open;
    const of = resultsOf(stored, 'repair-timed');
    const [least, middle, most] = wholeRatios(of, 'grpo', 'drmas').toSorted((a, b) => a.rate - b.rate);
    if (least === undefined || middle === undefined || most === undefined) return [];
    const factor = ({ ratio }: RateRatio) => Math.exp(ratio.mean);
    const reached = ({ slow }: RateRatio) => `${slow.reached} of ${slow.steps.length}`;
    return [
      {
        predicted: learns,
        found: `${reached(middle)} runs reach 90 %`,
        verdict: held(middle.slow.reached >= (of.part.waiting?.enough ?? Number.NaN)),
      },
      {
        predicted: 'It needs 1.2 to 2.5 times the steps at 1e-4 and 3e-4, more than 2 times at 1e-3',
        found: listed([least, middle, most].map((one) => factor(one).toFixed(2))),
        verdict: held([least, middle].every((one) => factor(one) >= 1.2 && factor(one) <= 2.5) && factor(most) > 2),
      },
    ];
  },
};

/** The predictions of a plan with own rates: ranges in points, of the whole curve. */
interface OwnRatesPrediction {
  /** Of `drmas` minus `grpo` at equal rates, by rate. */
  readonly equal: Readonly<Record<string, readonly [number, number]>>;
  /** A prediction at one rate without a range, which the runs cannot decide. */
  readonly vague?: { readonly rate: number; readonly said: string };
  /** Of each primary comparison, in the plan's order, and its verdict if the plan predicts one. */
  readonly primary: readonly { readonly range?: readonly [number, number]; readonly verdict?: Claim['verdict'] }[];
}

/** A plan of four estimators, each at its own rate. It is judged when all of its runs are there. */
export const ownRatesPlan = (name: string, { equal, vague, primary }: OwnRatesPrediction): Plan => ({
  name,
  outcomes(stored) {
    const id = `${name}-runs`;
    const open = unfinished(stored, [id], 'Each estimator at its own rate on a pretrained model');
    if (open !== undefined) return open;
    const of = resultsOf(stored, id);
    const own = of.part.ownRates as OwnRates;
    const lies = ({ mean: centre }: Comparison, [low, high]: readonly [number, number]) =>
      100 * centre >= low && 100 * centre <= high;
    const text = ([low, high]: readonly [number, number]) => `${low} to ${high} points`;
    const atRates = Object.entries(equal).map(([rate, range]) => ({
      range,
      found: differenceAt(of, own, ['drmas', 'grpo'], Number(rate)),
    }));
    const claims = claimsOf(of, own) ?? [];
    return [
      {
        predicted: `\`drmas\` minus \`grpo\` at ${listed(Object.entries(equal).map(([rate, range]) => `${rate}: ${text(range)}`))}`,
        found: listed(atRates.map(({ found }) => points(found.mean))),
        verdict: held(atRates.every(({ range, found }) => lies(found, range))),
      },
      ...(vague === undefined
        ? []
        : [
            {
              predicted: `\`drmas\` minus \`grpo\` at ${vague.rate}: ${vague.said}`,
              found: shortText(differenceAt(of, own, ['drmas', 'grpo'], vague.rate)),
              verdict: UNDECIDED,
            },
          ]),
      ...claims.map(({ pair, whole, verdict }, i) => {
        const { range, verdict: expected } = primary[i] ?? {};
        const wanted = [...(range === undefined ? [] : [text(range)]), ...(expected === undefined ? [] : [expected])];
        return {
          predicted: `Each at its rate, \`${pair.join('` minus `')}\`: ${wanted.join(', ')}`,
          found: `${shortText(whole)}, ${verdict}`,
          verdict:
            expected === 'equivalent' && verdict === 'no difference shown'
              ? UNDECIDED
              : held((range === undefined || lies(whole, range)) && (expected ?? verdict) === verdict),
        };
      }),
    ];
  },
});

const ownRates = ownRatesPlan('own-rates', {
  equal: { '0.0001': [0, 6], '0.0003': [1, 7] },
  vague: { rate: 0.001, said: '3 points, with a spread of 15 between pairs' },
  primary: [{ range: [-1, 6], verdict: 'no difference shown' }, { verdict: 'equivalent' }, { range: [-6, 2] }],
});

const stories = ownRatesPlan('stories', {
  equal: { '0.0001': [-4, 4], '0.0003': [-4, 4], '0.001': [-4, 4] },
  primary: [{ range: [-3, 3], verdict: 'no difference shown' }, { range: [-4, 4] }, { range: [-5, 5] }],
});

const wordsMore: Plan = {
  name: 'words-more',
  outcomes(stored) {
    const predicted = 'At 0.0003 `shrinkage` minus `drmas`: -2 to 4 points, `maxrl` by agent: -8 to 4, neither shown';
    const open = unfinished(stored, ['words-more-runs'], predicted);
    if (open !== undefined) return open;
    const ranked = rankedIn(stored, 'words-more-runs');
    const of = (name: string) => {
      const found = ranked.find(({ id }) => estimatorOf(id) === name);
      if (found === undefined) throw new Error(`words-more has no ${name}`);
      return found;
    };
    const both = [
      { ...of('shrinkage'), low: -2 },
      { ...of('maxrl-by-agent'), low: -8 },
    ];
    const lies = ({ gain, low, shown }: (typeof both)[number]) =>
      shown === 'no difference shown' && 100 * gain.mean >= low && 100 * gain.mean <= 4;
    return [{ predicted, found: listed(both.map(({ gain }) => shortText(gain))), verdict: held(both.every(lies)) }];
  },
};

const defaults: Plan = {
  name: 'defaults',
  outcomes(stored) {
    const cells = cellsOfDefault(stored.questions, stored.results, stored.cells);
    const ema = (regime: string) => {
      const gain = cells.find(({ label }) => label.includes(regime))?.gains[0];
      if (gain === undefined) throw new Error(`the rule has no cell of ${regime}`);
      return gain;
    };
    const [repair, fast] = [ema('`repair`'), ema('fast improvement')];
    const passing = verdictsOf(cells).filter(({ passes }) => passes);
    return [
      {
        predicted: '`ema` is ahead of `drmas` in `repair`, on fresh seeds',
        found: shortText(repair),
        verdict: held(repair.verdict === 'higher'),
      },
      {
        predicted: '`ema` is behind with fast improvement',
        found: shortText(fast),
        verdict: held(fast.verdict === 'lower'),
      },
      {
        predicted: 'No other estimator passes the rule for the default',
        found: `${passing.length} of ${CANDIDATES.length} pass`,
        verdict: held(passing.length === 0),
      },
    ];
  },
};

const pools: Plan = {
  name: 'pools',
  outcomes(stored) {
    const runs = linesOf<{ readonly arm: string; readonly seed: number; readonly late: number }>(stored, 'pools') ?? [];
    const minusSelf = (arm: string) => armsApart(runs, [arm, 'self'], ({ late }) => late);
    const gains = ['latest', 'uniform', 'prioritised'].map(minusSelf);
    const uniform = minusSelf('uniform');
    const range = [uniform.interval?.low, uniform.interval?.high].map((end = Number.NaN) => end.toFixed(2)).join(', ');
    return [
      {
        predicted: 'No pool of earlier versions is easier to exploit than self-play, and `uniform` is harder',
        found: `\`uniform\` minus \`self\`: +${uniform.mean.toFixed(2)} [${range}]`,
        verdict: held(gains.every((gain) => (gain.interval?.low ?? 0) <= 0) && (uniform.interval?.high ?? 0) < 0),
      },
    ];
  },
};

const pools2: Plan = {
  name: 'pools-2',
  outcomes(stored) {
    interface Run {
      readonly arm: string;
      readonly seed: number;
      readonly late: number;
    }
    const gain = armsApart(linesOf<Run>(stored, 'pools-2') ?? [], ['uniform', 'self'], ({ late }) => late);
    return [
      {
        predicted: 'Under attack `uniform` is ahead of self-play by 10 to 30 points',
        found: shortText(gain),
        verdict: held(100 * gain.mean >= 10 && 100 * gain.mean <= 30),
      },
    ];
  },
};

const teamSize: Plan = {
  name: 'team-size',
  outcomes(stored) {
    interface Run {
      readonly arm: string;
      readonly seed: number;
      readonly after: Readonly<Record<string, number>>;
    }
    const runs = linesOf<Run>(stored, 'team-size') ?? [];
    const unseen = ({ after }: Run) => mean([6, 7, 8].map((size) => after[`share ${size}`] ?? Number.NaN));
    const minus = (arm: string, other: string) => armsApart(runs, [arm, other], unseen);
    const [largest, roles, all] = [minus('mixture', 'five'), minus('mixture', 'roles'), minus('all', 'mixture')];
    return [
      {
        predicted: 'In larger teams than seen a mixture of sizes is above the largest size',
        found: shortText(largest),
        verdict: held(largest.verdict === 'higher'),
      },
      {
        predicted: 'A policy for each role makes no difference there',
        found: shortText(roles),
        verdict: held(roles.verdict !== 'higher' && roles.verdict !== 'lower'),
      },
      {
        predicted: 'Sizes that were not seen cost more than 10 points',
        found: shortText(all),
        verdict: held(100 * all.mean > 10),
      },
    ];
  },
};

const preferences: Plan = {
  name: 'preferences',
  outcomes(stored) {
    const pairs = linesOf<{ readonly one: number; readonly several: number }>(stored, 'preferences') ?? [];
    const gain = compare(pairs.map(({ one, several }) => one - several));
    return [
      {
        predicted: 'One team that reads the weights is ahead of a team for each',
        found: shortText(gain),
        verdict: held(gain.verdict === 'higher'),
      },
    ];
  },
};

/** A measurement of the study that learns again without each group: the faults that it must find by its plan. */
const whyOf = (name: string, least: number, predicted: string): Plan => ({
  name,
  outcomes(stored) {
    const cases = linesOf<{ readonly fault: string; readonly found: boolean }>(stored, name) ?? [];
    const faults = [...new Set(cases.map(({ fault }) => fault))];
    const found = faults.filter((name) => cases.filter((one) => one.fault === name && one.found).length >= 4).length;
    return [
      {
        predicted,
        found: `${found} of ${faults.length}`,
        verdict: held(found >= least),
      },
    ];
  },
});
const why = whyOf('why', 8, 'Learning again without each group names at least eight of ten planted faults');
const why2 = whyOf('why-2', 9, 'With other groups that show the letter it names nine of ten');

const stopping: Plan = {
  name: 'stopping',
  outcomes(stored) {
    interface Run {
      readonly game: string;
      readonly arm: string;
      readonly seed: number;
      readonly calls: number;
      readonly return: number;
      readonly quality: number;
    }
    const runs = linesOf<Run>(stored, 'stopping') ?? [];
    const of = (game: string, arm: string) => runs.filter((run) => run.game === game && run.arm === arm);
    const minusWhole = (game: string, arm: string, measure: 'calls' | 'return' | 'quality') =>
      compare(
        of(game, arm).map(
          (run) =>
            run[measure] - (of(game, 'whole-return').find(({ seed }) => seed === run.seed)?.[measure] ?? Number.NaN),
        ),
      );
    const bias = minusWhole('vain-loop, price of the turn', 'natural', 'calls');
    const calls = (game: string, arm: string) => mean(of(game, arm).map((run) => run.calls));
    const removed = calls('vain-loop, price of the turn', 'whole-return') < 1.1;
    const none = calls('vain-loop, price in the reward', 'natural') < 1.1;
    const keeps = (game: string) => {
      const [better, fewer, quality] = (['return', 'calls', 'quality'] as const).map(
        (measure) => minusWhole(game, 'continue', measure).interval,
      );
      return (better?.low ?? 0) > 0 || ((fewer?.high ?? 0) < 0 && (quality?.low ?? 0) > -0.01);
    };
    const kept = ['chosen-stop', 'spawn'].filter(keeps).length;
    return [
      {
        predicted: 'The natural return of turns calls too often; the whole return does not',
        found: `+${bias.mean.toFixed(2)} calls`,
        verdict: held((bias.interval?.low ?? 0) > 0 && removed && none),
      },
      {
        predicted: 'Credit for decisions by replays (`continue`) fails its rule in at least one of two games',
        found: `it passes in ${kept} of 2`,
        verdict: held(kept < 2),
      },
    ];
  },
};

const decisions: Plan = {
  name: 'decisions',
  outcomes({ cells }) {
    const credit = (name: string) =>
      mean(
        cells.decisions
          .filter(
            ({ family, estimator, refused }) => family === 'chosen-stop' && estimator === name && refused === undefined,
          )
          .map(({ stages }) => mean(Object.values(stages).map(({ cosine }) => cosine))),
      );
    const [ours, own] = [credit('magrpo'), credit('drmas,spread=none')];
    return [
      {
        predicted: 'In `chosen-stop` the credit of `magrpo` is not above that of `drmas` without spread',
        found: `${ours.toFixed(2)} and ${own.toFixed(2)}`,
        verdict: held(ours <= own),
      },
    ];
  },
};

/** A measurement of the study of smaller teams, by its file of results. */
const shape = (name: string): Plan => ({
  name,
  outcomes(stored) {
    const predicted = 'The study of smaller teams is right in at least 9 of 10 cases in each of five teams';
    const studies = linesOf<{ readonly team: string; readonly right: boolean }>(stored, name);
    if (studies === undefined) return [{ predicted, found: 'no run is stored', verdict: 'not run' }];
    const planted = studies.map(({ team }) => team).filter((team) => team !== 'shop'); // which has one study
    const counts = [...new Set(planted)].map((team) => studies.filter((one) => one.team === team && one.right).length);
    return [{ predicted, found: `the fewest: ${Math.min(...counts)} of 10`, verdict: held(Math.min(...counts) >= 9) }];
  },
});

const ABOUT_MEANS: readonly Plan[] = [
  ...[words, league, baseline, blind, catchUp, size, mechanism, tuned, paper, collapse],
  ...[catchUpRepair, ownRates, stories, defaults],
];
const OTHERS: readonly Plan[] = [
  ...[creditbench, lemma, smallGroups, losses, sums, trunk, pools, pools2, why, why2, stopping, decisions],
  ...[shape('shape'), shape('shape-2'), preferences, teamSize, wordsMore],
];

/** The plans of the table about a shared mean, and those of the table about other questions. */
export const PLANS = { means: ABOUT_MEANS, others: OTHERS } as const;

/** The day on which a plan was declared, as it says itself. */
function dayOf(root: string, name: string): string {
  const text = readFileSync(join(root, 'research/plans', `${name}.md`), 'utf8');
  const day = /Declared on (\d{4}-\d\d-\d\d)/.exec(text)?.[1];
  if (day === undefined) throw new Error(`${name}.md does not say when it was declared`);
  return new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(new Date(day));
}

/** The table of plans: each prediction with its day, what the runs say, and whether it held. */
export function declaredTable(stored: Stored, plans: readonly Plan[]): string {
  const rows = plans.flatMap((plan) => {
    const mark = JOINED.has(`${plan.name}.md`) ? '$^\\ast$' : COPIED.includes(plan.name) ? '$^\\dagger$' : '';
    return plan
      .outcomes(stored)
      .map(({ predicted, found, verdict }, i) => [
        ...(i === 0 ? [`${texOf(`\`${plan.name}\``)}${mark}`, dayOf(stored.root, plan.name)] : ['', '']),
        ...[predicted, found, verdict].map(texOf),
      ]);
  });
  return tabular(['l', 'l', 'l', 'l', 'l'], ['plan', 'declared', 'predicted before the runs', 'found', ''], rows);
}

/** How many predictions held and failed, of those that the runs decide. */
export function heldCounts(stored: Stored): { readonly held: number; readonly failed: number } {
  const verdicts = [...ABOUT_MEANS, ...OTHERS].flatMap((plan) => plan.outcomes(stored).map(({ verdict }) => verdict));
  const count = (wanted: string) => verdicts.filter((verdict) => verdict === wanted).length;
  return { held: count(held(true)), failed: count(held(false)) };
}
