/** docs/findings.md: a text whose numbers come from the results. */

import { mean } from '../../src/base/core/statistics.js';
import {
  curveScore,
  dosesOf,
  earned,
  fall,
  HINTS,
  lastReward,
  lastScore,
  PartResults,
  type Prediction,
  responseOf,
  ruleOf,
} from './analysis.js';
import { jobsOf, type Part, type Primary, type Question, type Regime } from './declaration.js';
import { figureName, gainText, partFigure, partText, slopeText } from './part-text.js';
import { lemmaTable, pairedRegimes, stabilityCounts, stabilityTable } from './stability.js';
import type { Results, TrainResult } from './stored-result.js';
import { primariesText, SUMMARY, summaryFigure, TWO_CURVES, twoCurves } from './summary.js';
import { distinct } from './work-through.js';

/**
 * Fills a text's tokens:
 * - `{{progress}}`: the number of finished results, by question;
 * - `{{runs}}` and `{{probes}}`: the number of finished training runs and probes, each counted once;
 * - `{{primaries}}`: the primary comparisons, with Holm's adjustment; `{{primaries:PAGE}}` links to that page;
 * - `{{stability}}` and `{{stabilityCounts}}`: norms and spikes of Dr. MAS against GRPO by regime, and their counts;
 * - `{{lemma:PART}}`: the measured and the predicted inflation of each agent in a part's regimes;
 * - `{{summary}}`: the figure of all regimes' gains against their own shares;
 * - `{{curve:PART/REGIME/VARIANT}}`: as `gain`, for the mean of all evaluations after the first;
 * - `{{part:ID}}`: figure, commands and table of a part;
 * - `{{gain:PART/REGIME/VARIANT}}`: the difference to the part's baseline, with its interval; with `/OTHER` added, the
 *   difference to that variant, as in the next three;
 * - `{{reward:PART/REGIME/VARIANT}}`: the same for the reward of the regime's agent in the last evaluation;
 * - `{{earned:PART/REGIME/VARIANT}}`: the same for the team's reward over all training steps;
 * - `{{fall:PART/REGIME/VARIANT}}`: the same for the difference between highest and last score;
 * - `{{score:PART/REGIME/VARIANT}}`: the mean of the last scores, in per cent;
 * - `{{calls:PART/REGIME/VARIANT/AGENT/OTHER}}`: turns of an agent for each turn of another, over all training steps;
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
  const gainBy =
    (score: typeof lastScore) =>
    ([id = '', regime = '', variant = '', other]: readonly string[]) => {
      const part = partOf(id);
      const of = new PartResults({ ...part, baseline: other ?? part.baseline }, results);
      return gainText(of.comparison(regimeOf(part, regime), of.variant(variant), score));
    };
  const meanOver = (
    id = '',
    regime = '',
    variant = '',
    measure: (run: TrainResult, regime: Regime) => number,
    text: (value: number) => string,
  ) => {
    const of = new PartResults(partOf(id), results);
    const where = regimeOf(of.part, regime);
    const runs = of.runs(where, of.variant(variant));
    return runs.length === 0 ? 'nothing yet' : text(mean(runs.map((run) => measure(run, where))));
  };
  const fill: Readonly<Record<string, (words: readonly string[]) => string>> = {
    progress: () => progressText(questions, results),
    runs: () => countText(questions, results, 'train'),
    probes: () => countText(questions, results, 'probe'),
    primaries: ([page = '']) => primariesText(primaries, partOf, results, page),
    stability: () => stabilityTable(pairedRegimes([...parts.values()], results)),
    stabilityCounts: () => stabilityCounts(pairedRegimes([...parts.values()], results)),
    lemma: ([id = '']) => lemmaTable(partOf(id), results),
    summary: () => `![${SUMMARY.title}](findings/figures/${SUMMARY.file})`,
    part: ([id = '']) => partText(partOf(id), results),
    gain: gainBy(lastScore),
    curve: gainBy(curveScore),
    reward: gainBy(lastReward),
    earned: gainBy(earned),
    fall: gainBy(fall),
    score: ([id, regime, variant]) =>
      meanOver(
        id,
        regime,
        variant,
        (run, where) => 100 * lastScore(where, run),
        (value) => `${value.toFixed(1)} %`,
      ),
    calls: ([id, regime, variant, agent = '', other = '']) =>
      meanOver(
        id,
        regime,
        variant,
        ({ agents }) =>
          known(agents[agent], `an agent ${agent}`).turns / known(agents[other], `an agent ${other}`).turns,
        (value) => value.toFixed(2),
      ),
    predicted: ([id = '', regime = '', by = '']) => {
      const of = new PartResults(partOf(id), results);
      const dose = dosesOf(of, of.baseline).find((one) => one.regime === regimeOf(of.part, regime));
      const value = dose?.predicted[predictor(by)] ?? Number.NaN;
      return Number.isNaN(value) ? 'nothing yet' : value.toFixed(2);
    },
    response: ([ids = '', variant = '', by = '']) => {
      const of = ids.split('+').map((id) => new PartResults(partOf(id), results));
      const { slope, correlation, points } = responseOf(of, variant, predictor(by));
      if (points === 0) return 'nothing yet';
      if (slope.pairs === 0) return 'no slope, because all regimes have the same value';
      return `${slopeText(slope)} (correlation ${correlation.toFixed(2)} over ${points} pairs)`;
    },
    rule: ([ids = '', variant = '', by = '']) => {
      const doses = ids.split('+').flatMap((id) => {
        const of = new PartResults(partOf(id), results);
        return dosesOf(of, of.variant(variant));
      });
      const { hinted, silent } = ruleOf(doses, predictor(by));
      if (hinted.doses + silent.doses === 0) return 'nothing yet';
      return `${HINTS[predictor(by)].text}: gains in ${hinted.gained} of ${hinted.doses} regimes; else in ${silent.gained} of ${silent.doses}`;
    },
  };
  return template.replaceAll(/\{\{(\w+)(?::([^}]*))?\}\}/g, (token, name: string, rest = '') =>
    known(fill[name], `the token ${token}`)(String(rest).split('/')),
  );
}

/** Fills the marked quotations of a page: `<!-- finding: TOKENS -->`, the filled tokens, `<!-- end -->`. */
export const fillMarked = (page: string, fill: (template: string) => string): string =>
  page.replaceAll(
    /<!-- finding: (.*?) -->.*?<!-- end -->/gs,
    (_, tokens: string) => `<!-- finding: ${tokens} -->${fill(tokens)}<!-- end -->`,
  );

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
  const rows = questions.map(({ id, asks, parts }) => {
    const jobs = distinct(parts.flatMap(jobsOf));
    const there = jobs.filter((job) => results.of(job) !== undefined).length;
    return `| [${id}](#${id}) | ${asks} | ${there} of ${jobs.length} |`;
  });
  return ['| | question | runs |', '|---|---|---|', ...rows].join('\n');
}

/** How many different results of a kind there are. A result that two parts share counts once. */
function countText(questions: readonly Question[], results: Results, kind: 'train' | 'probe'): string {
  const jobs = distinct(questions.flatMap(({ parts }) => parts.flatMap(jobsOf)));
  return jobs.filter((job) => job.kind === kind && results.of(job) !== undefined).length.toLocaleString('en');
}

/** The figures of all parts that have a result, by file name. */
export function figuresOf(questions: readonly Question[], results: Results): Map<string, string> {
  const parts = questions.flatMap(({ parts }) => parts);
  const begun = parts.filter((part) => jobsOf(part).some((job) => results.of(job) !== undefined));
  const probed = begun.filter((part) => part.probe === true);
  const curves = twoCurves(begun, results);
  return new Map([
    ...(curves === undefined ? [] : [[TWO_CURVES.file, curves] as const]),
    ...begun.flatMap((part) =>
      part.figure === undefined ? [] : [[figureName(part), partFigure(part, results)] as const],
    ),
    ...(probed.length === 0 ? [] : [[SUMMARY.file, summaryFigure(probed, results)] as const]),
  ]);
}
