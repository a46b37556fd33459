/** The text of `drmas shape`: the plan of the study, and the table of its teams with the recommendation. */
import type { Shape, ShapedTeam, ShapePlan } from '../../../runs/studies.js';
import { points } from '../ablation-printer.js';
import { duration, nearPath, nextCommands, percent, short, significant, table, wrap } from '../text-layout.js';

/** The lines before the runs: the teams, what was not derived, and the forecast. */
export function shapePlanLines(plan: ShapePlan, width: number): string[] {
  const { variants, notes, runs, parallel, seconds, directory } = plan;
  const at = parallel > 1 ? `, ${parallel} at a time` : '';
  const time = seconds === undefined ? '' : `: about ${duration(seconds)} and the warm starts, less what is dropped`;
  return [
    `${variants.length} smaller teams: ${variants.join(', ')}`,
    ...notes.map((note) => `not tried: ${note}`),
    `at most ${runs.length} runs${at}${time}, in ${nearPath(directory)}`,
  ].flatMap((line) => wrap(line, width));
}

const verdicts: Readonly<Record<Shape['variants'][number]['verdict'], string>> = {
  shown: 'as good',
  open: 'not shown',
  dropped: 'dropped',
  failed: 'a run failed',
};

export function shapeLines(shape: Shape, width: number): string[] {
  const { directory, margin, unit, whole, variants, chosen, file, set } = shape;
  const allowed = `${Number((100 * margin).toPrecision(3))} points`;
  const dearest = (a: ShapedTeam, b: ShapedTeam) => b.price - a.price;
  const rows = variants.toSorted(dearest).map((team) => {
    const { mean, interval, p, verdict, pairs } = team;
    return [
      ...numbers(team, whole, unit),
      pairs === 0 ? '-' : points(mean),
      interval === undefined ? '' : `[${points(interval.low)}, ${points(interval.high)}]`,
      verdict === 'dropped' || verdict === 'failed' ? '' : p.toFixed(4),
      verdict === 'dropped' ? `dropped after ${pairs} pairs` : verdicts[verdict],
    ];
  });
  const smallest = variants.find(({ name }) => name === chosen);
  const advice =
    smallest === undefined
      ? `no smaller team is shown to lose less than ${allowed}: keep the whole team`
      : `the smallest team that is as good: ${smallest.name}, for ${share(smallest.price, whole.price)} of the price; its loss is shown to be below ${allowed}`;
  return [
    '',
    ...table([
      ['team', 'score', 'tokens', 's', 'price', 'trained', 'loss or gain', '95 %', 'p', ''],
      [...numbers(whole, whole, unit), '', '', '', ''],
      ...rows,
    ]),
    ...wrap(
      `means over the last evaluations; tokens, seconds and price of an episode (${units[unit]}); p: of the test that the loss is below ${allowed}, adjusted for the number of teams`,
      width,
    ),
    '',
    ...wrap(advice, width),
    `figure: ${nearPath(`${directory}/shape.svg`)}`,
    ...(file === undefined
      ? []
      : nextCommands(['train', nearPath(file), ...set.flatMap((text) => ['--set', text])], ['watch', directory])),
  ];
}

const units: Readonly<Record<Shape['unit'], string>> = {
  currency: "in the recipe's currency",
  operations: 'in floating-point operations: 2 for each parameter and token',
  tokens: 'in tokens: the recipe has no prices, and the sizes of its models are not known',
};

const share = (price: number, whole: number) => `${Math.round((100 * price) / whole)} %`;

const numbers = (
  { name, score, tokens, seconds, price, trained }: ShapedTeam,
  whole: ShapedTeam,
  unit: Shape['unit'],
) => [
  name,
  percent(score),
  short(tokens),
  significant(seconds),
  unit === 'currency' ? significant(price) : share(price, whole.price),
  short(trained),
];
