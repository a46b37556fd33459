/** A part of the page: its figure, its table and the command that makes both. */
import { percent } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import {
  type Comparison,
  curveScore,
  dosesOf,
  fall,
  LARGEST_P,
  lastReward,
  lastScore,
  PartResults,
  scoreAt,
} from './analysis.js';
import { jobsOf, type Part, type Regime } from './declaration.js';
import { mechanismTable, noiseTable } from './mechanism.js';
import { ownRatesFigure, ownRatesText } from './own-rates.js';
import { holm } from './p-values.js';
import { normsFigure } from './stability.js';
import { type Results, repeatableCommand, type TrainResult } from './stored-result.js';
import { type Figure, figureText, gainPoint, type Series } from './svg.js';
import { differs, exactText, gainText, plain, points, table } from './text.js';
import { waitingFigure, waitingTable } from './waiting.js';
import { distinct } from './work-through.js';

const level = (share: number) => (Number.isFinite(share) ? (100 * share).toFixed(1) : '-');
/** The median of the differences, and in how many pairs the variant is better; empty without a pair. */
const signsOf = ({ pairs, median, better }: Comparison) =>
  pairs === 0 ? ['', ''] : [points(median), `${better} of ${pairs}`];

/** The mean; NaN for an empty list. */
const average = (values: readonly number[]) => (values.length === 0 ? Number.NaN : mean(values));

const ownText = (share = Number.NaN) => (Number.isNaN(share) ? '-' : percent(share, 0));

const scoresOf = (regime: Regime, runs: readonly TrainResult[]) => runs.map((run) => lastScore(regime, run));

/** One row a regime: the probe's prediction, and the gain of each variant. */
function doseTable(results: PartResults): string {
  const { part, baseline } = results;
  const others = part.variants.filter((variant) => variant !== baseline);
  const predictions = others.map((variant) => dosesOf(results, variant));
  const hasForm = part.regimes.every(({ closedForm }) => closedForm !== undefined);
  const inOrder = [...part.regimes.entries()].sort(([, a], [, b]) => (a.dose?.value ?? 0) - (b.dose?.value ?? 0));
  const rows = inOrder.map(([i, regime]) => [
    `${regime.dose?.label ?? regime.id}${part.ownReward === true ? `, ${regime.agentName ?? regime.agent}` : ''}`,
    ...(part.probe === true
      ? [
          plain(predictions[0]?.[i]?.predicted.inflation ?? NaN),
          ...(hasForm ? [plain(predictions[0]?.[i]?.closedForm ?? NaN)] : []),
          ownText(predictions[0]?.[i]?.predicted.ownShare),
        ]
      : []),
    level(average(scoresOf(regime, results.runs(regime, baseline)))),
    ...others.flatMap((variant, v) => {
      const { gain } = predictions[v]?.[i] ?? { gain: results.comparison(regime, variant) };
      return [
        level(average(scoresOf(regime, results.runs(regime, variant)))),
        gainText(gain),
        ...signsOf(gain),
        gainText(results.comparison(regime, variant, curveScore)),
        ...(part.ownReward === true ? [gainText(results.comparison(regime, variant, lastReward))] : []),
      ];
    }),
  ]);
  const predicted =
    part.probe === true ? ['predicted inflation', ...(hasForm ? ['in closed form'] : []), 'own share'] : [];
  const head = [
    'regime',
    ...predicted,
    baseline.id,
    ...others.flatMap(({ id }) => [
      id,
      `minus ${baseline.id}`,
      'median',
      'better in',
      'of the whole curve',
      ...(part.ownReward === true ? ["of the agent's reward"] : []),
    ]),
  ];
  return table(head, rows);
}

/** One row for every variant: how high it came and how far it fell. */
function fallTable(results: PartResults, regime: Regime): string {
  const rows = results.part.variants.map((variant) => {
    const runs = results.runs(regime, variant);
    const falls = runs.map((run) => fall(regime, run));
    const scores = scoresOf(regime, runs);
    const peaks = scores.map((score, i) => score + (falls[i] ?? 0));
    const more = variant === results.baseline ? '' : gainText(results.comparison(regime, variant, fall));
    return [`\`${variant.id}\``, level(average(peaks)), level(average(scores)), level(average(falls)), more];
  });
  return table(['variant', 'peak', 'end', 'fall', `fall, minus \`${results.baseline.id}\``], rows);
}

/** One row a variant: its pairs, its difference, and the results of the agent. */
function variantTable(results: PartResults, regime: Regime): string {
  const { part, baseline } = results;
  const rows = part.variants.map((variant) => {
    const runs = results.runs(regime, variant);
    const comparison = results.comparison(regime, variant);
    const agents = runs.flatMap(({ agents }) => agents[regime.agent] ?? []);
    const over = (pick: (agent: (typeof agents)[number]) => number) => mean(agents.map(pick));
    return [
      `\`${variant.id}\``,
      level(average(scoresOf(regime, runs))),
      variant === baseline ? '' : gainText(comparison),
      ...(variant === baseline ? ['', ''] : signsOf(comparison)),
      ...(agents.length === 0
        ? ['-', '-', '-']
        : [
            level(over(({ invalid }) => invalid)),
            plain(over(({ norm }) => norm)),
            plain(over(({ maxNorm }) => maxNorm)),
          ]),
    ];
  });
  return table(
    [
      'variant',
      'score',
      `minus \`${baseline.id}\``,
      'median',
      'better in',
      `${regime.agentName ?? regime.agent}: invalid %`,
      'mean norm',
      'largest',
    ],
    rows,
  );
}

/**
 * One row a variant, the highest first. It shows the score over the whole curve and the last evaluation, each with the
 * difference to the baseline and a p that is adjusted for the number of variants.
 */
function rankedTable(results: PartResults, regime: Regime, pairs: number): string {
  const { part, baseline } = results;
  const compared = part.variants.map((variant) => {
    const runs = results.runs(regime, variant);
    const [whole, last] = [curveScore, lastScore].map((score) => ({
      comparison: results.comparison(regime, variant, score),
      score: average(runs.map((run) => score(regime, run))),
    })) as [Outcome, Outcome];
    return { variant, whole, last };
  });
  const others = compared.filter(({ variant }) => variant !== baseline);
  const [byWhole, byLast] = (['whole', 'last'] as const).map((outcome) =>
    holm(others.map((other) => other[outcome].comparison.p)),
  );
  const cells = ({ comparison }: Outcome, p = 1) => {
    const { interval, mean: centre, better } = comparison;
    const range = interval === undefined ? '' : ` [${points(interval.low)}, ${points(interval.high)}]`;
    const claimed = p > LARGEST_P ? 'no difference shown' : differs(comparison);
    const verdict = comparison.pairs < pairs ? 'so far' : claimed;
    return [`${points(centre)}${range}`, `${better} of ${comparison.pairs}`, exactText(p), verdict];
  };
  const rows = compared
    .toSorted((a, b) => b.whole.score - a.whole.score)
    .map(({ variant, whole, last }) => {
      const i = others.findIndex((other) => other.variant === variant);
      const name = `\`${variant.id}\``;
      if (i < 0) return [name, level(whole.score), '', '', '', '', level(last.score), '', '', '', ''];
      return [name, level(whole.score), ...cells(whole, byWhole?.[i]), level(last.score), ...cells(last, byLast?.[i])];
    });
  const outcome = [`minus \`${baseline.id}\`, points`, 'better in', 'p after Holm', 'shown'];
  return table(['variant', 'score', ...outcome, 'last evaluation', ...outcome], rows);
}

/** A score of a variant, and its difference to the baseline. */
interface Outcome {
  readonly comparison: Comparison;
  readonly score: number;
}

function doseFigure(results: PartResults): Figure {
  const { part, baseline } = results;
  const series = part.variants
    .filter((variant) => variant !== baseline)
    .map((variant): Series => {
      const doses = dosesOf(results, variant).filter(({ gain }) => gain.pairs > 0);
      const plotted = doses.map(({ predicted, gain }) => gainPoint(1 / predicted.ownShare, gain));
      return { name: `${variant.id} minus ${baseline.id}`, points: plotted };
    });
  return {
    title: part.title,
    series,
    x: { label: '1 / own share that the probe saw', doublings: true, reference: 2 },
    y: { label: 'gain, points', reference: 0 },
  };
}

function curvesFigure(results: PartResults): Figure {
  const { part } = results;
  const series = part.regimes.flatMap((regime) =>
    part.variants.map((variant): Series => {
      const runs = results.runs(regime, variant);
      const steps = (runs[0]?.curve ?? []).map(({ step }) => step);
      const name = part.regimes.length === 1 ? variant.id : `${regime.dose?.label ?? regime.id}, ${variant.id}`;
      const at = (step: number) =>
        runs.flatMap(({ curve }) =>
          curve.filter((point) => point.step === step).map((point) => scoreAt(regime, point)),
        );
      return { name, line: true, points: steps.map((step) => ({ x: step, y: 100 * mean(at(step)) })) };
    }),
  );
  return { title: part.title, series, x: { label: 'step' }, y: { label: 'score, % (mean of runs)' } };
}

const figures = {
  arms: ownRatesFigure,
  dose: doseFigure,
  curves: curvesFigure,
  norms: normsFigure,
};

/** The name of a part's figure, beside the other parts' figures. */
export const figureName = ({ id }: Part): string => `${id}.svg`;

export function partFigure(part: Part, results: Results): string {
  const draw = part.waiting === undefined ? figures[part.figure ?? 'curves'] : waitingFigure;
  return figureText(draw(new PartResults(part, results)));
}

/** The figure, the table and the commands of a part, as Markdown. */
export function partText(part: Part, results: Results): string {
  const of = new PartResults(part, results);
  const jobs = distinct(jobsOf(part));
  const there = jobs.filter((job) => results.of(job) !== undefined).length;
  if (there === 0) return `*${part.title}: not run yet; \`npm run findings -- ${part.id}\` does.*`;
  const [example] = jobs;
  return [
    ...(part.figure === undefined ? [] : [`![${part.title}](findings/figures/${figureName(part)})`]),
    `*${part.title}. ${there} of ${jobs.length} runs. \`npm run findings -- ${part.id}\` makes them; one alone, the first:*`,
    `\`\`\`sh\n${example === undefined ? '' : repeatableCommand(example)}\n\`\`\``,
    ...tablesOf(of),
  ].join('\n\n');
}

function tablesOf(results: PartResults): string[] {
  const { figure, ownRates, ranked, regimes, variants, probeSeeds, waiting, overlap, still } = results.part;
  if (ownRates !== undefined) return ownRatesText(results, ownRates);
  if (waiting !== undefined) return [waitingTable(results)];
  if (overlap === true) return [mechanismTable(results)];
  if (still === true) return [noiseTable(results)];
  if (probeSeeds !== undefined) return []; // the page has tables of its own for the blind test
  if (ranked !== undefined) return regimes.map((regime) => rankedTable(results, regime, ranked.pairs));
  if (figure === 'dose' || (regimes.length > 1 && variants.length <= 3)) return [doseTable(results)];
  return regimes.flatMap((regime) => [
    ...(regimes.length > 1 ? [`${regime.dose?.label ?? regime.id}:`] : []),
    variantTable(results, regime),
    ...(figure === 'curves' ? [fallTable(results, regime)] : []),
  ]);
}
