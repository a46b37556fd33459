/** The Markdown of the findings as LaTeX, and their figures as pgfplots. */
import type { Axis, Figure, Series } from '../harness/svg.js';

const SPECIAL: Readonly<Record<string, string>> = {
  '\\': '\\textbackslash{}',
  '{': '\\{',
  '}': '\\}',
  $: '\\$',
  '&': '\\&',
  '#': '\\#',
  _: '\\_',
  '~': '\\textasciitilde{}',
  '^': '\\textasciicircum{}',
  '%': '\\%',
  '²': '$^2$',
  '–': '--',
};
const escaped = (text: string) => text.replaceAll(/[\\{}$&#_~^%²–]/g, (sign) => SPECIAL[sign] ?? sign);

/** Text without marks: signs of numbers, p values and per cent as they are set. */
const proseOf = (text: string) =>
  escaped(text)
    .replaceAll(/(^|[\s([,/])-(?=\.?\d)/g, '$1$-$')
    .replaceAll(/\bp = (\.?\d[\d.]*\d|\d)/g, '$p$\\,=\\,$1')
    .replaceAll(/ \\%/g, '\\,\\%');

/** A text in Markdown as LaTeX: names of code, bold words, links without their targets, and tables. */
export function texOf(text: string): string {
  const lines = text.trim().split('\n');
  if (lines.length > 2 && lines.every((line) => line.startsWith('|'))) return tableOf(lines);
  return text
    .split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/)
    .map((piece) => {
      if (/^`.+`$/s.test(piece)) return `\\code{${escaped(piece.slice(1, -1))}}`;
      if (/^\*\*.+\*\*$/s.test(piece)) return `\\textbf{${texOf(piece.slice(2, -2))}}`;
      const link = /^\[([^\]]+)\]\([^)]+\)$/.exec(piece)?.[1];
      return link === undefined ? proseOf(piece) : texOf(link);
    })
    .join('');
}

/** Shorter words for the cells of a table. Their captions explain `n.d.`. */
const inCell = (text: string) =>
  text
    .replaceAll(/ points(?=,)/g, '')
    .replaceAll(/:? ?no difference shown/g, (found) => (found[0] === ':' ? ' (n.d.)' : 'n.d.'));

/** The cells of a line of a Markdown table. */
const cellsOf = (line: string) =>
  line
    .replaceAll(/^\| ?| ?\|$/g, '')
    .split(/ ?\| ?/)
    .map((cell) => texOf(inCell(cell.trim())));

function tableOf([head = '', , ...rows]: readonly string[]): string {
  return tabular(
    cellsOf(head).map(() => 'l'),
    cellsOf(head),
    rows.map(cellsOf),
  );
}

/** A table of LaTeX cells. */
export function tabular(
  columns: readonly string[],
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const line = (cells: readonly string[]) => `${cells.join(' & ')} \\\\`;
  return [
    `\\begin{tabular}{@{}${columns.join('')}@{}}`,
    '\\toprule',
    line(head),
    '\\midrule',
    ...rows.map(line),
    '\\bottomrule',
    '\\end{tabular}',
  ].join('\n');
}

/** The words of a figure in the paper that differ from those on the page. */
export interface PlotOptions {
  /** The options of the axis, as pgfplots has them. */
  readonly axis: string;
  /** LaTeX in place of the figure's labels. */
  readonly x?: string;
  readonly y?: string;
  /** LaTeX above the axes. */
  readonly title?: string;
  /** Without a legend, beside a figure that has the same. */
  readonly bare?: boolean;
}

const MARKS = ['*', 'square*', 'triangle*', 'diamond*', 'pentagon*'];

/** A number with at most five digits, as pgfplots reads it. */
const number = (value: number) => String(Number(value.toPrecision(5)));

/** The ends of an axis, its names and its reference line. */
function axisOptions(name: 'x' | 'y', { include = [], names, reference }: Axis): string[] {
  return [
    ...(include.length > 0 ? [`${name}min=${Math.min(...include)}`] : []),
    ...(include.length > 1 ? [`${name}max=${Math.max(...include)}`] : []),
    ...(names === undefined
      ? []
      : [`${name}tick={${names.map((_, i) => i).join(',')}}`, `${name}ticklabels={${names.map(escaped).join(',')}}`]),
    ...(reference === undefined
      ? []
      : [`extra ${name} ticks={${reference}}`, `extra ${name} tick labels={}`, `extra ${name} tick style={reference}`]),
  ];
}

function plotOf({ points, line, thin }: Series, index: number): string {
  const mark = MARKS[index % MARKS.length];
  const style = thin
    ? `c${index}, thin, opacity=.35, mark=none, forget plot`
    : `c${index}, mark=${mark}, mark size=1.3pt, ${line ? 'thick' : 'only marks'}`;
  const bars = points.some(({ low }) => low !== undefined)
    ? ', error bars/.cd, y dir=both, y explicit, error bar style={thin, opacity=.6}, error mark options={mark size=0pt}'
    : '';
  const at = points.map(({ x, y, low, high }) =>
    low === undefined || high === undefined
      ? `(${number(x)},${number(y)})`
      : `(${number(x)},${number(y)}) += (0,${number(high - y)}) -= (0,${number(y - low)})`,
  );
  return `\\addplot[${style}${bars}] coordinates {${at.join(' ')}};`;
}

/** A figure as a picture of pgfplots: a colour and an entry of the legend for each name of its series. */
export function pgfplot({ series, x, y }: Figure, { axis, bare = false, ...labels }: PlotOptions): string {
  const names = [...new Set(series.map(({ name }) => name))];
  const named = series.filter(({ thin }) => thin !== true);
  const ends = series.flatMap(({ points }) => points.flatMap(({ low = [], high = [] }) => [low, high].flat()));
  return [
    '\\begin{tikzpicture}',
    '\\begin{axis}[paper,',
    [
      `xlabel={${labels.x ?? texOf(x.label)}}`,
      `ylabel={${labels.y ?? texOf(y.label)}}`,
      ...(labels.title === undefined ? [] : [`title={${labels.title}}`]),
      ...axisOptions('x', x),
      ...(ends.length === 0 ? [] : [`ymin=${number(Math.min(...ends))}`, `ymax=${number(Math.max(...ends))}`]),
      ...axisOptions('y', y),
      axis,
    ].join(', '),
    ']',
    ...series.map((one) => plotOf(one, names.indexOf(one.name))),
    ...(named.length > 1 && !bare ? [`\\legend{${named.map(({ name }) => `{${texOf(name)}}`).join(',')}}`] : []),
    '\\end{axis}',
    '\\end{tikzpicture}',
  ].join('\n');
}
