/** The tables of docs/creditbench.md, from the results. */
import { mean } from '@drmas/engine/math';
import { pairedInterval } from '../../src/runs/analysis/paired-interval.js';
import { signFlipP } from '../../src/runs/analysis/sign-flips.js';
import { holm } from '../harness/p-values.js';
import { EPISODES_MEAN, estimatorNames, LEARNING_RATE, LEVELS, OWN_MEAN, RARE_CALLER, SEEDS, STARTS } from './cells.js';
import { decisionFamilies } from './decisions.js';
import { STAGES } from './direct-credit.js';
import { type Family, families, START, tickets } from './families.js';
import { BUDGET } from './recipe.js';
import { type CreditResult, readPart, type TrainingResult } from './results.js';
import { trainingScore } from './submission.js';

/** The score of a cell, by family, estimator and seed. */
type Scores = ReadonlyMap<string, ReadonlyMap<string, ReadonlyMap<number, number>>>;

export interface Cells {
  readonly credit: readonly CreditResult[];
  /** Credit in the families of decisions. */
  readonly decisions: readonly CreditResult[];
  readonly training: readonly TrainingResult[];
  /** Levels of a baseline at several starts. */
  readonly baseline: readonly TrainingResult[];
}

/** The cells at the usual difficulties. */
export async function readCells(root: string): Promise<Cells> {
  const usual = new Map([...families, ...decisionFamilies].map(({ id, knob }) => [id, knob.usual]));
  const isUsual = ({ family, difficulty }: { family: string; difficulty: number }) => usual.get(family) === difficulty;
  const [credit, training] = [await readPart(root, 'credit'), await readPart(root, 'training')];
  const [decisions, baseline] = [await readPart(root, 'decisions'), await readPart(root, 'baseline')];
  return {
    credit: [...credit.values()].filter(isUsual),
    decisions: [...decisions.values()].filter(isUsual),
    training: [...training.values()].filter(isUsual),
    baseline: [...baseline.values()],
  };
}

function scoresOf<Result extends CreditResult | TrainingResult>(
  results: readonly Result[],
  score: (result: Result) => number,
): Scores {
  const scores = new Map<string, Map<string, Map<number, number>>>();
  for (const result of results) {
    if (result.refused !== undefined) continue;
    const family = scores.get(result.family) ?? new Map<string, Map<number, number>>();
    const seeds = family.get(result.estimator) ?? new Map<number, number>();
    seeds.set(result.seed, score(result));
    scores.set(result.family, family.set(result.estimator, seeds));
  }
  return scores;
}

const creditScores = (credit: readonly CreditResult[]) =>
  scoresOf(credit, ({ stages }) => mean(Object.values(stages).map(({ cosine }) => cosine)));
const trainingScores = ({ training }: Pick<Cells, 'training'>) =>
  scoresOf(training, ({ curve }) => trainingScore(curve));

const seedsOf = (scores: Scores, family: string, estimator: string): ReadonlyMap<number, number> =>
  scores.get(family)?.get(estimator) ?? new Map();

/** The seeds that every estimator has in every family: pairs. */
function commonSeeds(scores: Scores, estimators: readonly string[], of: readonly Family[] = families): number[] {
  if (estimators.length === 0) return [];
  return SEEDS.filter((seed) =>
    of.every(({ id }) => estimators.every((estimator) => seedsOf(scores, id, estimator).has(seed))),
  );
}

/** Estimators with at least one score in each family. */
const measured = (scores: Scores, of: readonly Family[] = families) =>
  [...new Set([...estimatorNames, ...[...scores.values()].flatMap((family) => [...family.keys()])])].filter((name) =>
    of.every(({ id }) => seedsOf(scores, id, name).size > 0),
  );

/**
 * Kendall's rank correlation with its correction for ties (tau-b): 1 for equal orders, -1 for opposite ones; not a
 * number if one side has no order.
 */
export function kendall(a: readonly number[], b: readonly number[]): number {
  let [agreement, orderedA, orderedB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++)
    for (let j = 0; j < i; j++) {
      const x = order(a[i] as number, a[j] as number);
      const y = order(b[i] as number, b[j] as number);
      agreement += x * y;
      orderedA += x * x;
      orderedB += y * y;
    }
  return agreement / Math.sqrt(orderedA * orderedB);
}

/** Scores that differ by rounding alone are equal. */
const order = (x: number, y: number) => (Math.abs(x - y) < 1e-9 ? 0 : Math.sign(x - y));

const percent = (score: number) => (100 * score).toFixed(1);

/** A table of scores: estimators in the order of their mean over the families. */
function scoreTable(scores: Scores, of: readonly Family[] = families): string {
  const estimators = measured(scores, of);
  const seeds = commonSeeds(scores, estimators, of);
  if (seeds.length === 0) return 'There are no results of all estimators yet.';
  const score = (family: string, estimator: string) =>
    mean(seeds.map((seed) => seedsOf(scores, family, estimator).get(seed) as number));
  const rows = estimators.map((estimator) => {
    const each = of.map(({ id }) => score(id, estimator));
    return { estimator, each, all: mean(each) };
  });
  rows.sort((a, b) => b.all - a.all);
  const best = of.map((_, i) => Math.max(...rows.map(({ each }) => each[i] as number)));
  const shown = (value: number, i: number) =>
    (best[i] as number) - value < 5e-4 ? `**${percent(value)}**` : percent(value);
  return [
    `Means over ${seeds.length} seeds (${seeds[0]} to ${seeds.at(-1)}), in hundredths. The best of a family is bold.`,
    '',
    `| estimator | ${of.map(({ id }) => id).join(' | ')} | mean |`,
    `|---|${of.map(() => '---:').join('|')}|---:|`,
    ...rows.map(
      ({ estimator, each, all }) => `| \`${estimator}\` | ${each.map(shown).join(' | ')} | ${percent(all)} |`,
    ),
  ].join('\n');
}

/** How alike two disjoint halves of the seeds rank the estimators. */
function stabilityTable({ credit, training }: { readonly credit: Scores; readonly training: Scores }): string {
  const sides = Object.entries({ credit, training }).map(([name, scores]) => {
    const estimators = measured(scores);
    const seeds = commonSeeds(scores, estimators);
    const half = Math.floor(seeds.length / 2);
    const means = (family: string, chosen: readonly number[]) =>
      estimators.map((one) => mean(chosen.map((seed) => seedsOf(scores, family, one).get(seed) as number)));
    const [first, second] = [seeds.slice(0, half), seeds.slice(half, 2 * half)];
    const taus = families.map(({ id }) => (half === 0 ? Number.NaN : kendall(means(id, first), means(id, second))));
    const overall = (chosen: readonly number[]) => {
      const each = families.map(({ id }) => means(id, chosen));
      return estimators.map((_, i) => mean(each.map((family) => family[i] as number)));
    };
    return { name, half, taus, all: half === 0 ? Number.NaN : kendall(overall(first), overall(second)) };
  });
  const shown = (tau: number) => (Number.isNaN(tau) ? 'none' : tau.toFixed(2));
  const failing = (name: string, taus: readonly number[]) => {
    const ids = families.flatMap(({ id }, i) => ((taus[i] as number) >= LEAST_TAU ? [] : [`\`${id}\``]));
    const some = ids.length === families.length ? 'no family can' : `these families cannot: ${ids.join(', ')}`;
    return wrapped(`- ${name}: ${ids.length === 0 ? 'all families can' : some}.`);
  };
  return [
    `| family | ${sides.map(({ name, half }) => `${name}, ${half} against ${half} seeds`).join(' | ')} |`,
    `|---|${sides.map(() => '---:').join('|')}|`,
    ...families.map(({ id }, i) => `| \`${id}\` | ${sides.map(({ taus }) => shown(taus[i] as number)).join(' | ')} |`),
    `| mean of all families | ${sides.map(({ all }) => shown(all)).join(' | ')} |`,
    '',
    `Families that rank the estimators alike on both sets (Kendall's tau of at least ${LEAST_TAU}):`,
    '',
    ...sides.map(({ name, half, taus }) => (half > 0 ? failing(name, taus) : `- ${name}: too few seeds are present.`)),
  ].join('\n');
}

const LEAST_TAU = 0.8;

/** Whether the estimators with better credit learn more: Kendall's tau between the two parts, by family. */
function predictionTable(credit: Scores, training: Scores): string {
  const estimators = measured(credit).filter((name) => measured(training).includes(name));
  const seeds = { credit: commonSeeds(credit, estimators), training: commonSeeds(training, estimators) };
  if (seeds.credit.length === 0 || seeds.training.length === 0) return 'There are no results of both parts yet.';
  const means = (scores: Scores, family: string, chosen: readonly number[]) =>
    estimators.map((one) => mean(chosen.map((seed) => seedsOf(scores, family, one).get(seed) as number)));
  const taus = families.map(({ id }) => kendall(means(credit, id, seeds.credit), means(training, id, seeds.training)));
  return [
    "| family | Kendall's tau between credit and training |",
    '|---|---:|',
    ...families.map(
      ({ id }, i) => `| \`${id}\` | ${Number.isNaN(taus[i]) ? 'none' : (taus[i] as number).toFixed(2)} |`,
    ),
  ].join('\n');
}

/** Each estimator minus another one, seed by seed, over the families' means; none before two pairs are there. */
function gainsOver(scores: Scores, other: string): { readonly estimator: string; readonly gains: number[] }[] {
  const estimators = measured(scores);
  const seeds = commonSeeds(scores, estimators);
  if (seeds.length < 2) return [];
  const overall = (estimator: string, seed: number) =>
    mean(families.map(({ id }) => seedsOf(scores, id, estimator).get(seed) as number));
  return estimators
    .filter((estimator) => estimator !== other)
    .map((estimator) => ({ estimator, gains: seeds.map((seed) => overall(estimator, seed) - overall(other, seed)) }));
}

/** Each estimator minus another one in training, seed by seed, over the families' means. */
export const trainingGains = (cells: Pick<Cells, 'training'>, other: string) => gainsOver(trainingScores(cells), other);

/** Each estimator against plain GRPO in pairs, over the families' means. */
function pairsTable(scores: Scores): string {
  const rows = gainsOver(scores, BASELINE)
    .map(({ estimator, gains }) => ({ estimator, gains, ...pairedInterval(gains) }))
    .sort((a, b) => b.mean - a.mean);
  if (rows.length === 0) return 'There are too few pairs yet.';
  return [
    `| estimator minus \`${BASELINE}\` | mean, 95 % t interval | higher in |`,
    '|---|---:|---:|',
    ...rows.map(({ estimator, gains, mean: gain, interval }) => {
      const [low, high] = [interval?.low ?? Number.NaN, interval?.high ?? Number.NaN];
      const higher = gains.filter((one) => one > 0).length;
      return `| \`${estimator}\` | ${percent(gain)} [${percent(low)}, ${percent(high)}] | ${higher} of ${gains.length} |`;
    }),
  ].join('\n');
}

const BASELINE = 'grpo';

/** Each estimator's means of both parts over the families, the best learner first. */
function summaryTable(credit: Scores, training: Scores): string {
  const estimators = measured(credit).filter((name) => measured(training).includes(name));
  const overall = (scores: Scores, estimator: string) =>
    mean(
      commonSeeds(scores, estimators).flatMap((seed) =>
        families.map(({ id }) => seedsOf(scores, id, estimator).get(seed) as number),
      ),
    );
  if (commonSeeds(credit, estimators).length === 0 || commonSeeds(training, estimators).length === 0)
    return 'There are no results of both parts yet.';
  const rows = estimators
    .map((name) => ({ name, credit: overall(credit, name), training: overall(training, name) }))
    .sort((a, b) => b.training - a.training);
  return [
    '| estimator | training | credit |',
    '|---|---:|---:|',
    ...rows.map((row) => `| \`${row.name}\` | ${percent(row.training)} | ${percent(row.credit)} |`),
  ].join('\n');
}

const LEVEL_NAMES: Readonly<Record<Level, string>> = {
  'constant,baseline=0': '0',
  'constant,baseline=0.5': '.5',
  'constant,baseline=1': '1',
  [OWN_MEAN]: "the agent's own mean",
  [EPISODES_MEAN]: "the episodes' mean",
};

type Level = (typeof LEVELS)[number];

/** The scores of each level of a baseline at a start, in the order of the seeds that all levels have there. */
function levelsAt(start: number, baseline: readonly TrainingResult[], score: (curve: readonly number[]) => number) {
  const scores = scoresOf(
    baseline.filter((cell) => cell.start === start),
    ({ curve }) => score(curve),
  );
  const at = (level: Level, seed: number) => seedsOf(scores, RARE_CALLER, level).get(seed);
  const seeds = SEEDS.filter((seed) => LEVELS.every((level) => at(level, seed) !== undefined));
  return { seeds, of: (level: Level) => seeds.map((seed) => at(level, seed) as number) };
}

const shareText = (start: number) => `${Math.round(12 * start)}/12`;
const lastOf = (curve: readonly number[]) => curve.at(-1) ?? Number.NaN;

/** The score of each level of a baseline at each start, and the last evaluation beside it. */
function levelTable({ baseline }: Cells): string {
  const at = STARTS.map((start) => ({
    score: levelsAt(start, baseline, trainingScore),
    last: levelsAt(start, baseline, lastOf),
  }));
  if (at.some(({ score: { seeds } }) => seeds.length === 0)) return 'There are no results of all levels yet.';
  const pairs = [...new Set(at.map(({ score: { seeds } }) => seeds.length))].join(' or ');
  return [
    `Means over ${pairs} seeds, in hundredths: the mean of the evaluations after the first, and the last evaluation.`,
    '',
    `| baseline | ${STARTS.map((start) => `starts at ${shareText(start)}`).join(' | ')} |`,
    `|---|${STARTS.map(() => '---:').join('|')}|`,
    ...LEVELS.map((level) => {
      const each = at.map(({ score, last }) => `${percent(mean(score.of(level)))}, ${percent(mean(last.of(level)))}`);
      return `| ${LEVEL_NAMES[level]} | ${each.join(' | ')} |`;
    }),
  ].join('\n');
}

/** The agent's own mean minus another level of a baseline, at a start. */
export interface LevelComparison {
  readonly other: Level;
  readonly start: number;
  readonly gains: readonly number[];
  readonly p: number;
  /** By Holm over all comparisons. */
  readonly adjusted: number;
  readonly verdict: 'higher' | 'lower' | 'no difference shown';
}

/** The eight comparisons of research/plans/baseline.md; none before each has two pairs. */
export function levelComparisons({ baseline }: Pick<Cells, 'baseline'>): LevelComparison[] {
  const compared = (['constant,baseline=0', EPISODES_MEAN] as const).flatMap((other) =>
    STARTS.map((start) => {
      const { of } = levelsAt(start, baseline, trainingScore);
      const others = of(other);
      const gains = of(OWN_MEAN).map((own, i) => own - (others[i] as number));
      return { other, start, gains };
    }),
  );
  if (compared.some(({ gains }) => gains.length < 2)) return [];
  const ps = compared.map(({ gains }) => signFlipP(gains));
  const adjusted = holm(ps);
  return compared.map((one, i) => {
    const { mean: gain, interval } = pairedInterval(one.gains);
    const differs =
      (adjusted[i] as number) <= 0.05 && (interval?.low ?? Number.NaN) * (interval?.high ?? Number.NaN) > 0;
    const verdict = differs ? (gain > 0 ? 'higher' : 'lower') : 'no difference shown';
    return { ...one, p: ps[i] as number, adjusted: adjusted[i] as number, verdict };
  });
}

function levelPairs(cells: Cells): string {
  const compared = levelComparisons(cells);
  if (compared.length === 0) return 'There are too few pairs yet.';
  return [
    "| the agent's own mean minus | start | mean, 95 % t interval | higher in | p | p after Holm | by the plan |",
    '|---|---:|---:|---:|---:|---:|---|',
    ...compared.map(({ other, start, gains, p: raw, adjusted, verdict }) => {
      const { mean: gain, interval } = pairedInterval(gains);
      const [low, high] = [interval?.low ?? Number.NaN, interval?.high ?? Number.NaN];
      const higher = `${gains.filter((one) => one > 0).length} of ${gains.length}`;
      const [p, after] = [raw, adjusted].map((value) => value.toPrecision(2));
      const range = `${percent(gain)} [${percent(low)}, ${percent(high)}]`;
      return `| ${LEVEL_NAMES[other]} | ${shareText(start)} | ${range} | ${higher} | ${p} | ${after} | ${verdict} |`;
    }),
  ].join('\n');
}

/** Cells without a score, with the reason. */
function refusedList({ credit, decisions, training }: Omit<Cells, 'baseline'>): string {
  const reasons = new Map<string, string>();
  for (const [part, results] of Object.entries({ credit, decisions, training }))
    for (const { estimator, refused } of results)
      if (refused !== undefined) reasons.set(`\`${estimator}\` (${part})`, refused);
  if (reasons.size === 0) return 'No estimator that was run so far lacks a score.';
  return [...reasons].map(([name, why]) => `- ${name}: ${why}`).join('\n');
}

const familyTable = (of: readonly Family[]) =>
  [
    '| family | what makes credit hard | knob, its range, and its usual value |',
    '|---|---|---|',
    ...of.map(
      ({ id, property, knob: { means, least, most, usual } }) =>
        `| \`${id}\` | ${property} | ${means}: ${least} to ${most}, ${usual} |`,
    ),
  ].join('\n');

/**
 * The limits of the training part that the reader must know before its tables: how much of it was run, how its learning
 * rate was chosen, and families in which most estimators end at one score.
 */
function disclosure(training: readonly TrainingResult[]): string {
  const scored = training.filter(({ refused }) => refused === undefined);
  const all = families.length * estimatorNames.length * Math.max(10, new Set(training.map(({ seed }) => seed)).size);
  const started = families.flatMap(({ id }) => {
    const cells = scored.filter(({ family }) => family === id);
    if (cells.length === 0) return [];
    const seeds = new Set(cells.map(({ seed }) => seed)).size;
    return [`\`${id}\` (${cells.length} cells, ${seeds} ${seeds === 1 ? 'seed' : 'seeds'})`];
  });
  const isWhole = training.length >= all;
  const present = [
    `**${training.length.toLocaleString('en')} of ${all.toLocaleString('en')} training cells are here**`,
    isWhole || started.length === 0 ? '' : `: ${started.join(', ')}`,
    isWhole ? '' : '. So this part ranks no estimators yet',
  ].join('');
  const rate =
    `**The learning rate** of ${LEARNING_RATE} was compared with 0.001 on seed 901 of two families after the plan, with ` +
    'plain GRPO alone. The tables use no cell of that seed';
  return [present, rate, ...plateaus(scored)].map((line) => wrapped(`- ${line}.`)).join('\n');
}

/** The item of a list in lines of at most 120 characters. */
const wrapped = (item: string) => item.replaceAll(/(.{1,118})(?: |$)/g, '$1\n  ').trimEnd();

/** Families in which at least half of the estimators have the same last score, with that score. */
function plateaus(scored: readonly TrainingResult[]): string[] {
  return families.flatMap(({ id }) => {
    const seeds = new Set(scored.filter(({ family }) => family === id).map(({ seed }) => seed));
    const ends = [...seeds].flatMap((seed) => {
      const last = scored
        .filter((cell) => cell.family === id && cell.seed === seed)
        .flatMap(({ curve }) => curve.at(-1) ?? []);
      const counts = last.map((score) => last.filter((other) => order(score, other) === 0).length);
      const most = Math.max(0, ...counts);
      if (last.length < FEWEST_FOR_A_PLATEAU || most < last.length / 2) return [];
      return [{ seed, most, of: last.length, score: (last[counts.indexOf(most)] as number).toFixed(2) }];
    });
    const [first, ...others] = ends;
    if (first === undefined) return [];
    const told = [
      `with seed ${first.seed}, ${first.most} of ${first.of} estimators end at ${first.score}`,
      ...others.map(({ seed, most, score }) => `with seed ${seed}, ${most} at ${score}`),
    ];
    return [`**A plateau in \`${id}\`**: ${told.join('; ')}. There last scores cannot rank them`];
  });
}

const FEWEST_FOR_A_PLATEAU = 5;

const budgetText = () => {
  const { steps, tasksPerStep, groupSize, evaluations, tasks, samples } = BUDGET;
  const stages = Object.values(STAGES).filter((stage) => stage > 0);
  const heldOut = Math.min(tasks, tickets(1).test.length); // an evaluation plays each task once
  return (
    `${steps} steps of ${tasksPerStep} tasks with ${groupSize} episodes each, ${steps * tasksPerStep * groupSize} ` +
    `episodes in all. An evaluation before them and after every ${steps / evaluations} plays ${heldOut}\n` +
    `held-out tasks ${samples} times each. AdamW at ${LEARNING_RATE} for all estimators. Agents begin with a ` +
    `success of ${START} if their\nfamily says nothing else, in the later stages of the credit part ${stages.join(' and ')}.`
  );
};

/** Fills the marked places of a page: `<!-- creditbench: NAME -->`, the text, `<!-- end -->`. */
export function fillCreditbench(page: string, cells: Cells): string {
  const [credit, training] = [creditScores(cells.credit), trainingScores(cells)];
  const texts: Readonly<Record<string, () => string>> = {
    families: () => familyTable(families),
    decisionFamilies: () => familyTable(decisionFamilies),
    decisions: () => scoreTable(creditScores(cells.decisions), decisionFamilies),
    summary: () => summaryTable(credit, training),
    budget: budgetText,
    disclosure: () => disclosure(cells.training),
    credit: () => scoreTable(credit),
    training: () => scoreTable(training),
    creditPairs: () => pairsTable(credit),
    trainingPairs: () => pairsTable(training),
    prediction: () => predictionTable(credit, training),
    stability: () => stabilityTable({ credit, training }),
    levels: () => levelTable(cells),
    levelPairs: () => levelPairs(cells),
    refused: () => refusedList(cells),
  };
  return page.replaceAll(/<!-- creditbench: (\w+) -->\n.*?<!-- end -->/gs, (_, name: string) => {
    const text = texts[name];
    if (text === undefined) throw new Error(`there is no text '${name}' of the benchmark`);
    return `<!-- creditbench: ${name} -->\n\n${text()}\n\n<!-- end -->`;
  });
}
