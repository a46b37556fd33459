/** The tables and figures that only the paper has. */
import { mean } from '@drmas/engine/math';
import { levelComparisons } from '../creditbench/page.js';
import { compare, curveScore, lastScore, predictionOf } from '../harness/analysis.js';
import type { Figure, Series } from '../harness/svg.js';
import { exactText } from '../harness/text.js';
import { creditRanks, estimatorOf, rankedIn, resultsOf, SHARED_IN_LEAGUE, type Stored, shortText } from './declared.js';
import { tabular, texOf } from './tex.js';

/** A run has failed if its last score lies below this. */
const FAILED = 0.25;

/** The estimators of the table of classes: their baseline, and their names in the three benchmarks. */
const CLASSES: readonly (readonly [baseline: string, name: string, credit?: string])[] = [
  ['mean of the episodes', 'grpo'],
  ['mean of the turns', 'grpo-turn'],
  ['mean of the whole step', 'reinforce++'],
  ['none: imitates successes', 'rejection'],
  ["agent's mean in the group", 'drmas'],
  ['the same, the turn left out', 'rloo-by-agent', 'rloo,byAgent=true'],
  ["agent's mean, shrunk to other tasks", 'shrinkage'],
  ["agent's running mean", 'ema'],
  ['a critic', 'gae'],
];

/** Estimators minus Dr. MAS, each at its own best rate in two teams, and over the families of CreditBench. */
export function classTable(stored: Stored): string {
  const [league, tuned] = ['league-pairs', 'tuned-pairs'].map(
    (id) => new Map(rankedIn(stored, id).map((one) => [estimatorOf(one.id), one])),
  );
  const credit = creditRanks(stored);
  const of = resultsOf(stored, 'tuned-pairs');
  const failures = (name: string) => {
    const variant = of.part.variants.find(({ id }) => estimatorOf(id) === name);
    const [regime] = of.part.regimes;
    if (variant === undefined || regime === undefined) return '';
    const runs = of.runs(regime, variant);
    return `${runs.filter((run) => lastScore(regime, run) < FAILED).length}`;
  };
  const rows = CLASSES.map(([baseline, name, inCredit = name]) => {
    const cells = [league?.get(name), tuned?.get(name), credit.get(inCredit)].map((one) => {
      if (name === 'drmas') return ['0', '']; // the others are compared with it
      return one === undefined ? ['', ''] : [shortText(one.gain), exactText(one.p)];
    });
    const [first = [], second = [], last = []] = cells;
    return [baseline, `\`${name}\``, ...first, ...second, failures(name), ...last];
  });
  return tabular(
    ['l', 'l', 'l', 'r', 'l', 'r', 'r', 'l', 'r'],
    ['baseline', 'estimator', '\\code{escalation}', 'Holm', '\\code{repair}', 'Holm', 'failed', 'CreditBench', 'Holm'],
    rows.map((cells) => cells.map(texOf)),
  );
}

/** The teams with a probe before each pair, and whether they were built for the effect. */
const TEAMS = [
  ['mismatch', 'escalation', 'yes'],
  ['drift', 'repair-25', 'yes'],
  ['natural', 'desk', 'yes'],
  ['natural', 'shop', 'no'],
  ['natural', 'math', 'no'],
] as const;

/** The findings of a probe of each team before training, and the gain of Dr. MAS at one rate for both sides. */
export function teamsTable(stored: Stored): string {
  const rows = TEAMS.map(([part, id, built]) => {
    const of = resultsOf(stored, part);
    const regime = of.part.regimes.find((one) => one.id === id);
    if (regime === undefined) throw new Error(`there is no regime ${id} in ${part}`);
    const probes = of.part.seeds.flatMap((seed) => of.probe(regime, seed) ?? []);
    const over = (value: (probe: (typeof probes)[number]) => number) => mean(probes.map(value)).toFixed(2);
    const agentOf = (probe: (typeof probes)[number]) => probe.agents[regime.agent];
    return [
      `\`${id.replace(/-\d+$/, '')}\`, ${regime.agentName ?? regime.agent}`,
      built,
      over((probe) => agentOf(probe)?.callsPerEpisode ?? Number.NaN),
      over((probe) => agentOf(probe)?.reward ?? Number.NaN),
      over(({ success }) => success),
      over((probe) => predictionOf(regime.agent, probe).ownShare),
      shortText(of.comparison(regime, of.variant('drmas'))),
    ];
  });
  return tabular(
    ['l', 'l', 'r', 'r', 'r', 'r', 'l'],
    ['team, agent', 'built', 'calls', '$q_0$', '$p$', 'share', 'gain, points'],
    rows.map((cells) => cells.map(texOf)),
  );
}

/** The agent's own mean minus 0 and minus the episodes' mean, at each start of the agent's success. */
export function levelsTable({ cells }: Stored): string {
  const rows = levelComparisons(cells).map(({ other, start, gains, adjusted, verdict }) => [
    other.startsWith('constant') ? 'a baseline of 0' : "the episodes' mean",
    start.toFixed(2),
    shortText(compare(gains)),
    exactText(adjusted),
    verdict,
  ]);
  const head = ["the agent's own mean minus", 'start', 'difference', 'Holm', 'by the plan'];
  return tabular(
    ['l', 'r', 'l', 'r', 'l'],
    head,
    rows.map((cells) => cells.map(texOf)),
  );
}

/** The classes of estimators in the figure of the sweep. */
const SWEEP_CLASSES = [
  ["the others' mean in it", (id: string) => SHARED_IN_LEAGUE.includes(id)],
  ['statistics of its own', (id: string) => !SHARED_IN_LEAGUE.includes(id) && id !== 'rejection'],
  ['no mean (`rejection`)', (id: string) => id === 'rejection'],
] as const;

/** The score over the whole curve at each rate of the league's sweep: thin lines are estimators, thick ones a mean. */
export function sweepFigure(stored: Stored): Figure {
  const of = resultsOf(stored, 'league-sweep');
  const [regime] = of.part.regimes;
  if (regime === undefined) throw new Error('the sweep has no regime');
  const rates = [...new Set(of.part.variants.map(({ learningRate = Number.NaN }) => learningRate))].sort(
    (a, b) => a - b,
  );
  const score = (id: string) => 100 * mean(of.runs(regime, of.variant(id)).map((run) => curveScore(regime, run)));
  const names = [...new Set(of.part.variants.map(({ id }) => estimatorOf(id)))];
  const series = SWEEP_CLASSES.flatMap(([name, belongs]): Series[] => {
    const lines = names
      .filter(belongs)
      .map((estimator) => rates.map((rate, x) => ({ x, y: score(`${estimator}-at-${rate}`) })));
    const middle = rates.map((_, x) => ({ x, y: mean(lines.map((line) => line[x]?.y ?? Number.NaN)) }));
    return [
      ...(lines.length > 1 ? lines.map((points) => ({ name, points, thin: true })) : []),
      { name, points: middle, line: true },
    ];
  });
  return {
    title: of.part.title,
    series,
    x: { label: 'learning rate', names: rates.map(String) },
    y: { label: "expert's success over the curve, %", include: [0] },
  };
}
