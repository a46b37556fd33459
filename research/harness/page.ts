/** docs/findings.md and docs/research/experiments.md: texts whose numbers come from the results. */

import { mean, median } from '@drmas/engine/math';
import {
  compare,
  curveScore,
  dosesOf,
  fall,
  HINTS,
  lastReward,
  lastScore,
  PartResults,
  type Prediction,
  responseOf,
  ruleOf,
  scoreAt,
  slopeOnDose,
} from './analysis.js';
import {
  BLIND,
  blindFact,
  blindFigure,
  blindText,
  calibrationText,
  gainingAtRandom,
  isTrusted,
  regimesText,
} from './blind.js';
import { anchorOf, jobsOf, type Part, type Primary, type Question, type Variant } from './declaration.js';
import { overlapSlope } from './mechanism.js';
import { fittedText } from './own-rates.js';
import { holm } from './p-values.js';
import { figureName, partFigure, partText } from './part-text.js';
import { collapseTable, lemmaTable, pairedRegimes, spikesTable, stabilityCounts, stabilityTable } from './stability.js';
import { calibrationsText, hintTeams, rangesText, ratesText, stepFact } from './step-hint.js';
import type { Results, TrainResult } from './stored-result.js';
import { primariesText, SUMMARY, summaryFigure, TWO_CURVES, twoCurves } from './summary.js';
import { figureText } from './svg.js';
import { exactText, gainText, slopeText, table } from './text.js';
import {
  factorsText,
  RATE_FACTOR,
  rateFactorFigure,
  ratioSlopeText,
  ratiosTable,
  ratioText,
  reachedText,
  soonerTable,
} from './waiting.js';
import { distinct, doneIn } from './work-through.js';

/**
 * Fills a text's tokens:
 * - `{{progress}}`: the number of finished results, by question;
 * - `{{runs}}` and `{{probes}}`: the number of finished training runs and probes, each counted once;
 * - `{{primaries}}`: the primary comparisons, with Holm's adjustment;
 * - `{{stability}}` and `{{stabilityCounts}}`: norms and spikes of Dr. MAS against GRPO by regime, and their counts;
 * - `{{lemma:PART}}`: the measured and the predicted inflation of each agent in a part's regimes;
 * - `{{summary}}`: the figure of all regimes' gains against their own shares;
 * - `{{blindFigure}}`, `{{blind:PART}}`, `{{calibration:PART}}` and `{{regimes:PART}}`: the blind test's figure and
 *   tables, `{{fact:PART/NAME}}` one of its numbers, `{{gainingAtRandom:PART/DRAW}}` the share of all drawn regimes
 *   that would gain, and `{{trusted:PART}}` the word for the probe's hint;
 * - `{{curve:PART/REGIME/VARIANT}}`: as `gain`, for the mean of all evaluations after the first;
 * - `{{holm:PART/REGIME/VARIANT}}`: its p, adjusted for the number of the part's comparisons in the regime;
 * - `{{regimesByHolm:PART/VARIANT}}`: `curve` in each regime with enough pairs, with p adjusted for their number;
 * - `{{doseSlope:PART/VARIANT}}`: the slope of `curve` for each doubling of the dose, over these regimes;
 * - `{{compared:PART:REGIME:VARIANT:OTHER+...}}`: a row for each difference, with p adjusted for their number;
 * - `{{collapse:PART+PART}}` and `{{spikes:PART+PART}}`: collapsed runs and spikes of GRPO and Dr. MAS at each rate;
 * - `{{sooner:PART+PART/SLOW/QUICK}}`: the times of two estimators in parts that are timed;
 * - `{{ratios:PART+PART/SLOW/QUICK}}`: their times at each equal rate; `{{ratio:PART/SLOW/QUICK/RATE}}` at
 *   one of them; `{{ratioSlope:PART/SLOW/QUICK}}`: the change of
 *   this ratio for ten times the rate; `{{factors:PART@RATE+PART@RATE/SLOW/QUICK}}`: the least and the largest of
 *   some ratios; `{{reached:PART/VARIANT}}`: the runs that get there; `{{rateFactor}}`: the figure of these ratios;
 * - `{{stepCalibration}}`, `{{stepRanges}}`, `{{stepRates}}`: the tables of research/plans/hint.md, `{{stepFact:NAME}}`
 *   one of its numbers;
 * - `{{distinct}}`: the number of finished training runs that differ in their curve or their norms;
 * - `{{done:PART}}`: its runs that are stored, of those that are declared;
 * - `{{curveHolm:PART/REGIME/VARIANT}}`: as `holm`, for the mean of all evaluations after the first;
 * - `{{below:PART/REGIME/VARIANT/SHARE}}`: the runs whose last score lies below this share, and the lowest last score;
 * - `{{overlapSlope:PART}}`: the slope of the gain over the whole curve on the overlap of contexts;
 * - `{{spent:PART}}`: tokens, cost and seconds of an episode under each variant;
 * - `{{part:ID}}`: figure, commands and table of a part;
 * - `{{gain:PART/REGIME/VARIANT}}`: the difference to the part's baseline, with its interval; with `/OTHER` added, the
 *   difference to that variant, as in the next three. `PART+PART` joins the pairs of parts;
 * - `{{reward:PART/REGIME/VARIANT}}`: the same for the reward of the regime's agent in the last evaluation;
 * - `{{fall:PART/REGIME/VARIANT}}`: the same for the difference between highest and last score;
 * - `{{score:PART/REGIME/VARIANT}}`: the mean of the last scores, in per cent;
 * - `{{start:PART/REGIME/VARIANT}}`: the mean of the first scores, before reinforcement;
 * - `{{predicted:PART/REGIME/inflation}}` (or `ownShare`): the probe's value for the regime's agent;
 * - `{{response:PART+PART/VARIANT/inflation}}` (or `ownShare`): how the gain depends on the probe's value.
 * - `{{rule:PART+PART/VARIANT/inflation}}` (or `ownShare`): how well the probe's hint predicts a shown gain.
 * @throws Error naming an unknown token
 */
export function fillPage(
  template: string,
  questions: readonly Question[],
  results: Results,
  primaries: readonly Primary[] = [],
): string {
  const parts = new Map(questions.flatMap((question) => question.parts.map((part) => [part.id, part] as const)));
  const partOf = (id: string): Part => known(parts.get(id), `a part ${id}`);
  /** The results of parts, from their ids joined by `+`. */
  const resultsOf = (ids: string) => ids.split('+').map((id) => new PartResults(partOf(id), results));
  const gainBy =
    (score: typeof lastScore) =>
    ([id = '', regime = '', variant = '', other]: readonly string[]) => {
      const parts = id.split('+').map(partOf);
      const gains = parts.flatMap((part) => {
        const of = new PartResults(part, results).against(other ?? part.baseline);
        return of.gains(regimeOf(part, regime), of.variant(variant), score).map(({ gain }) => gain);
      });
      const planned = parts.reduce((sum, { seeds }) => sum + seeds.length, 0);
      return gainText(compare(gains, planned));
    };
  const holmBy =
    (score: typeof lastScore) =>
    ([id = '', regime = '', variant = '']: readonly string[]) => {
      const of = new PartResults(partOf(id), results);
      const others = of.part.variants.filter((one) => one !== of.baseline);
      const compared = others.map((one) => of.comparison(regimeOf(of.part, regime), one, score));
      if (compared.some(({ pairs }) => pairs === 0)) return 'nothing yet';
      return exactText(holm(compared.map(({ p }) => p))[others.indexOf(of.variant(variant))] ?? 1);
    };
  const meanBy =
    (score: typeof lastScore) =>
    ([id = '', regime = '', variant = '']: readonly string[]) => {
      const of = new PartResults(partOf(id), results);
      const where = regimeOf(of.part, regime);
      const runs = of.runs(where, of.variant(variant));
      return runs.length === 0 ? 'nothing yet' : `${mean(runs.map((run) => 100 * score(where, run))).toFixed(1)} %`;
    };
  const fill: Readonly<Record<string, (words: readonly string[]) => string>> = {
    progress: () => progressText(questions, results),
    runs: () => countText(questions, results, 'train'),
    probes: () => countText(questions, results, 'probe'),
    primaries: () => primariesText(primaries, partOf, questions, results),
    stability: () => stabilityTable(pairedRegimes(chosen([...parts.values()]), results)),
    stabilityCounts: () => stabilityCounts(pairedRegimes(chosen([...parts.values()]), results)),
    lemma: ([id = '']) => lemmaTable(partOf(id), results),
    summary: () => `![${SUMMARY.title}](findings/figures/${SUMMARY.file})`,
    part: ([id = '']) => partText(partOf(id), results),
    blindFigure: () => `![${BLIND.title}](findings/figures/${BLIND.file})`,
    blind: ([id = '']) => blindText(partOf(id), results),
    calibration: ([id = '']) => calibrationText(partOf(id), results),
    regimes: ([id = '']) => regimesText(partOf(id), results),
    fact: ([id = '', name = '']) => blindFact(partOf(id), results, name),
    gainingAtRandom: ([id = '', draw = '']) => gainingAtRandom(partOf(id), partOf(draw), results),
    trusted: ([id = '']) => (isTrusted(partOf(id), results) ? 'will probably' : 'may'),
    fitted: ([id = '', one = '', other = '']) => {
      const of = new PartResults(partOf(id), results);
      const { ownRates } = of.part;
      if (ownRates === undefined) throw new Error(`${id} has no rates of its arms`);
      return fittedText(of, ownRates, [one, other]);
    },
    stepCalibration: () => calibrationsText(hintTeams(partOf, results)),
    stepRanges: () => rangesText([0.5, 0.8].map((rise) => ({ rise, teams: hintTeams(partOf, results, rise) }))),
    stepRates: () => ratesText(hintTeams(partOf, results)),
    stepFact: ([name = '']) => stepFact(hintTeams(partOf, results), name),
    gain: gainBy(lastScore),
    curve: gainBy(curveScore),
    holm: holmBy(lastScore),
    curveHolm: holmBy(curveScore),
    below: ([id = '', regime = '', variant = '', share = '']) => {
      const of = new PartResults(partOf(id), results);
      const where = regimeOf(of.part, regime);
      const scores = of.runs(where, of.variant(variant)).map((run) => lastScore(where, run));
      if (scores.length === 0) return 'nothing yet';
      const low = scores.filter((score) => score < Number(share)).length;
      return `${low} of ${scores.length} runs (the lowest at ${(100 * Math.min(...scores)).toFixed(1)} %)`;
    },
    done: ([id = '']) => {
      const { there, declared } = doneIn(partOf(id), results);
      return `${there} of ${declared}`;
    },
    distinct: () => distinctText(questions, results),
    ratios: ([ids = '', slow = '', quick = '']) => ratiosTable(resultsOf(ids), slow, quick),
    ratioSlope: ([id = '', slow = '', quick = '']) => ratioSlopeText(new PartResults(partOf(id), results), slow, quick),
    ratio: ([id = '', slow = '', quick = '', rate = '']) =>
      ratioText(new PartResults(partOf(id), results), slow, quick, Number(rate)),
    factors: ([cells = '', slow = '', quick = '']) =>
      factorsText(cells.split('+'), (id) => new PartResults(partOf(id), results), [slow, quick]),
    reached: ([id = '', variant = '']) => reachedText(new PartResults(partOf(id), results), variant),
    rateFactor: () => `![${RATE_FACTOR.title}](findings/figures/${RATE_FACTOR.file})`,
    regimesByHolm: ([id = '', variant = '']) => {
      const of = new PartResults(partOf(id), results);
      const whole = wholeRegimes(of, of.variant(variant));
      if (whole.length === 0) return 'nothing yet';
      const adjusted = holm(whole.map(({ gain }) => gain.p));
      const rows = whole.map(({ regime, gain }, i) => [
        `${regime.dose?.label}`,
        gainText(gain),
        exactText(adjusted[i] ?? 1),
      ]);
      return table(['', `${variant} minus ${of.baseline.id}, whole curve`, 'p by Holm'], rows);
    },
    doseSlope: ([id = '', variant = '']) => {
      const of = new PartResults(partOf(id), results);
      const whole = wholeRegimes(of, of.variant(variant)).map(({ regime }) => regime);
      if (whole.length < 2) return 'nothing yet';
      return slopeText(slopeOnDose(of, whole, of.variant(variant)));
    },
    compared: ([rows = '']) => comparedText(rows.split('+'), partOf, results),
    collapse: ([ids = '']) => collapseTable(resultsOf(ids)),
    spikes: ([ids = '']) => spikesTable(resultsOf(ids)),
    sooner: ([ids = '', slow = '', quick = '']) => soonerTable(resultsOf(ids), slow, quick),
    overlapSlope: ([id = '']) => overlapSlope(new PartResults(partOf(id), results)),
    spent: ([id = '']) => spentText(partOf(id), results),
    reward: gainBy(lastReward),
    fall: gainBy(fall),
    score: meanBy(lastScore),
    start: meanBy((where, run) => scoreAt(where, run.curve[0] ?? { step: 0, team: Number.NaN })),
    predicted: ([id = '', regime = '', by = '']) => {
      const of = new PartResults(partOf(id), results);
      const dose = dosesOf(of, of.baseline).find((one) => one.regime === regimeOf(of.part, regime));
      const value = dose?.predicted[predictor(by)] ?? Number.NaN;
      return Number.isNaN(value) ? 'nothing yet' : value.toFixed(2);
    },
    response: ([ids = '', variant = '', by = '']) => {
      const of = resultsOf(ids);
      const { slope, correlation, points } = responseOf(of, variant, predictor(by));
      if (points === 0) return 'nothing yet';
      if (slope.pairs === 0) return 'no slope, because all regimes have the same value';
      return `${slopeText(slope)} (correlation ${correlation.toFixed(2)} over ${points} pairs)`;
    },
    rule: ([ids = '', variant = '', by = '']) => {
      const doses = resultsOf(ids).flatMap((of) => dosesOf(of, of.variant(variant)));
      const { hinted, silent } = ruleOf(doses, predictor(by));
      if (hinted.doses + silent.doses === 0) return 'nothing yet';
      return `${HINTS[predictor(by)].text}: gains in ${hinted.gained} of ${hinted.doses} regimes; else in ${silent.gained} of ${silent.doses}`;
    },
  };
  return template.replaceAll(/\{\{(\w+)(?::([^}]*))?\}\}/g, (token, name: string, rest = '') =>
    known(fill[name], `the token ${token}`)(String(rest).split('/')),
  );
}

/** Differences between two variants, a row each, with Holm's adjustment over all of them. */
function comparedText(texts: readonly string[], partOf: (id: string) => Part, results: Results): string {
  const rows = texts.map((text) => text.split(':'));
  const compared = rows.map(([id = '', regime = '', variant = '', other = '']) => {
    const of = new PartResults({ ...partOf(id), baseline: other }, results);
    const where = regimeOf(of.part, regime);
    return {
      name: `${where.dose?.label ?? where.id}: \`${variant}\` minus \`${other}\``,
      last: of.comparison(where, of.variant(variant)),
      whole: of.comparison(where, of.variant(variant), curveScore),
    };
  });
  if (compared.some(({ last }) => last.pairs === 0)) return 'nothing yet';
  const adjusted = holm(compared.map(({ last }) => last.p));
  return table(
    ['', 'last evaluation', 'better in', 'p by Holm', 'of the whole curve'],
    compared.map(({ name, last, whole }, i) => [
      name,
      gainText(last),
      `${last.better} of ${last.pairs}`,
      exactText(adjusted[i] ?? 1),
      gainText(whole),
    ]),
  );
}

/** The cost of an episode of the last evaluation under each variant: medians over the runs. */
function spentText(part: Part, results: Results): string {
  const of = new PartResults(part, results);
  const rows = part.regimes.flatMap((regime) =>
    part.variants.map((variant) => {
      const runs = of.runs(regime, variant);
      const middle = (value: (run: TrainResult) => number | undefined, digits: number) =>
        runs.length === 0 ? '-' : median(runs.map((run) => value(run) ?? Number.NaN)).toFixed(digits);
      return [
        `\`${variant.id}\``,
        middle(({ spent }) => spent?.read, 0),
        middle(({ spent }) => spent?.written, 1),
        middle(({ spent }) => 1e6 * (spent?.cost ?? Number.NaN), 1),
        middle(({ origin }) => 1e3 * (origin.secondsPerEpisode ?? Number.NaN), 2),
      ];
    }),
  );
  return table(['variant', 'tokens read', 'tokens written', 'cost, millionths', 'milliseconds'], rows);
}

/** The regimes of a part whose pairs are all there, with the gain over the whole curve. */
const wholeRegimes = (of: PartResults, variant: Variant) =>
  of.part.regimes
    .map((regime) => ({ regime, gain: of.comparison(regime, variant, curveScore) }))
    .filter(({ gain }) => gain.pairs === of.part.seeds.length);

/**
 * Fills the marked quotations of a page: `<!-- finding: TOKENS -->`, the filled tokens, `<!-- end -->`. Marks and
 * numbers that somebody has wrapped over two lines are put on one, so no number escapes the check.
 */
export const fillMarked = (page: string, fill: (template: string) => string): string =>
  page.replaceAll(/<!--\s*finding:\s*(.*?)\s*-->.*?<!--\s*end\s*-->/gs, (_, marked: string) => {
    const tokens = marked.replaceAll(/\{\{.*?\}\}/gs, (token) => token.replaceAll(/\s+/g, '')).replaceAll(/\s+/g, ' ');
    return `<!-- finding: ${tokens} -->${fill(tokens)}<!-- end -->`;
  });

const predictor = (name: string): keyof Prediction => {
  if (name !== 'inflation' && name !== 'ownShare') throw new Error(`there is no predictor ${name}`);
  return name;
};

const regimeOf = (part: Part, id: string) =>
  known(
    part.regimes.find((regime) => regime.id === id),
    `a regime ${id} in ${part.id}`,
  );

function known<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new Error(`unknown: ${what}`);
  return value;
}

function progressText(questions: readonly Question[], results: Results): string {
  const rows = questions.map((question) => {
    const jobs = distinct(question.parts.flatMap(jobsOf));
    const there = jobs.filter((job) => results.of(job) !== undefined).length;
    return `| [${question.id}](#${anchorOf(question)}) | ${question.asks} | ${there} of ${jobs.length} |`;
  });
  return ['| | question | runs |', '|---|---|---|', ...rows].join('\n');
}

/** How many different results of a kind there are. A result that two parts share counts once. */
function countText(questions: readonly Question[], results: Results, kind: 'train' | 'probe'): string {
  const jobs = distinct(questions.flatMap(({ parts }) => parts.flatMap(jobsOf)));
  return jobs.filter((job) => job.kind === kind && results.of(job) !== undefined).length.toLocaleString('en');
}

/** The number of training runs whose curve or norms differ from those of each other run. */
function distinctText(questions: readonly Question[], results: Results): string {
  const outcomes = distinct(questions.flatMap(({ parts }) => parts.flatMap(jobsOf))).flatMap((job) => {
    const result = results.of(job);
    return result?.kind === 'train' ? [JSON.stringify([result.curve, result.agents])] : [];
  });
  return new Set(outcomes).size.toLocaleString('en');
}

const [GRPO, DRMAS] = ['grpo', 'drmas'];

/** The parts whose regimes were chosen, and not drawn for the blind test. */
const chosen = (parts: readonly Part[]) => parts.filter(({ probeSeeds }) => probeSeeds === undefined);

/** The figures of all parts that have a result, by file name. */
export function figuresOf(questions: readonly Question[], results: Results): Map<string, string> {
  const parts = questions.flatMap(({ parts }) => parts);
  const begun = parts.filter((part) => jobsOf(part).some((job) => results.of(job) !== undefined));
  const probed = chosen(begun).filter((part) => part.probe === true);
  const drawn = begun.filter(({ probeSeeds, seeds }) => probeSeeds !== undefined && seeds.length > 0);
  const curves = twoCurves(begun, results);
  const timed = begun.filter(({ waiting, variants }) => waiting !== undefined && variants.length > 2);
  return new Map([
    ...(timed.length === 0
      ? []
      : [
          [
            RATE_FACTOR.file,
            figureText(
              rateFactorFigure(
                timed.map((part) => new PartResults(part, results)),
                GRPO,
                DRMAS,
              ),
            ),
          ] as const,
        ]),
    ...(curves === undefined ? [] : [[TWO_CURVES.file, curves] as const]),
    ...begun.flatMap((part) =>
      part.figure === undefined ? [] : [[figureName(part), partFigure(part, results)] as const],
    ),
    ...drawn.map((part) => [BLIND.file, figureText(blindFigure(part, results))] as const),
    ...(probed.length === 0 ? [] : [[SUMMARY.file, summaryFigure(probed, results)] as const]),
  ]);
}
