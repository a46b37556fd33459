/** The variants of an ablation with two or more aims, in plain characters, and the variants on the Pareto front. */
import type { ParetoPicture, ParetoPoint } from '../../../runs/analysis.js';
import { fixed, significant, table, wrap } from '../text-layout.js';

const ROWS = 11;
const WIDEST = 56;
const LABEL = 8;

export function paretoLines(picture: ParetoPicture, width: number): string[] {
  const { parts, points, hypervolume } = picture;
  const rows = points.map(({ variant, values, front }, i) => [
    letterOf(i),
    variant,
    ...values.map(significant),
    front ? 'on the front' : '',
  ]);
  const covered =
    hypervolume === undefined
      ? ''
      : `; together they cover ${fixed(hypervolume, 2)} of the box between the worst and the best value of each part`;
  return [
    ...table([['', 'parts of the reward', ...parts, ''], ...rows]),
    ...wrap(
      `means of the last evaluations; on the front: no variant is at least as good in all parts${covered}`,
      width,
    ),
    ...(parts.length === 2 ? ['', ...scatterLines(picture, width)] : []),
    '',
  ];
}

const letterOf = (i: number) => String.fromCharCode((i < 26 ? 97 : 65) + (i % 26));

/** A scatter plot: the first part to the right, the second upwards. */
function scatterLines({ parts, points }: ParetoPicture, width: number): string[] {
  const columns = Math.max(8, Math.min(WIDEST, width - LABEL - 2));
  const [x, y] = [0, 1].map((part) => rangeOf(points, part)) as [Range, Range];
  const cells = Array.from({ length: ROWS }, () => Array.from({ length: columns }, () => ' '));
  for (const [i, { values }] of points.entries()) {
    const row = cells[ROWS - 1 - placeOf(values[1] as number, y, ROWS)] as string[];
    const column = placeOf(values[0] as number, x, columns);
    row[column] = row[column] === ' ' ? letterOf(i) : '*';
  }
  const [low, high] = [significant(x.low), significant(x.high)];
  const indent = ' '.repeat(LABEL + 2);
  return [
    `${parts[1]}`,
    ...cells.map((row, i) => {
      const label = i === 0 ? significant(y.high) : i === ROWS - 1 ? significant(y.low) : '';
      return `${label.padStart(LABEL)} |${row.join('')}`.trimEnd();
    }),
    `${indent}${low}${high.padStart(Math.max(high.length + 1, columns - low.length))}`,
    `${indent}${parts[0]}${points.length > 1 ? '   (*: several)' : ''}`,
  ];
}

interface Range {
  readonly low: number;
  readonly high: number;
}

function rangeOf(points: readonly ParetoPoint[], part: number): Range {
  const values = points.map(({ values }) => values[part] as number);
  return { low: Math.min(...values), high: Math.max(...values) };
}

const placeOf = (value: number, { low, high }: Range, places: number) =>
  high === low ? 0 : Math.round(((value - low) / (high - low)) * (places - 1));
