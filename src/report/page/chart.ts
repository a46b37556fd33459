/** Charts as SVG without any script. Colours are the classes c0..c7 of the page's style; lines differ in dashes too. */
import { significant } from '../../core/format.js';
import { type Html, html } from './html.js';
import { type Point, type Scale, scaleFor, thin } from './scale.js';

export interface Series {
  readonly name: string;
  readonly points: readonly Point[];
  /** The index of the series' colour; by default its position among the series. */
  readonly colour?: number;
  /** The intervals of points, drawn as vertical bars. */
  readonly intervals?: readonly { readonly x: number; readonly low: number; readonly high: number }[];
  /** Marked points, each with its tooltip. */
  readonly marks?: readonly (Point & { readonly text: string })[];
}

export interface ChartOptions {
  readonly title: string;
  readonly series: readonly Series[];
  /** The text of a value on the y axis. */
  readonly format?: (value: number) => string;
  /** The values that the y axis must include. */
  readonly include?: readonly number[];
  readonly logarithmic?: boolean;
  /** The values of the charts beside it, so that all share one scale. */
  readonly shared?: { readonly x: readonly number[]; readonly y: readonly number[] };
  /** A horizontal line, such as an inflation of 1. */
  readonly reference?: number;
}

const WIDTH = 400;
const HEIGHT = 200;
const LEFT = 46;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 22;
const DASHES = ['', '6 3', '2 3', '9 3 2 3'];
/** The most points that get dots; with more, a series is a line alone. */
const MOST_DOTS = 30;

/** A chart of values over steps, one line a series. */
export function lineChart(options: ChartOptions): Html {
  const { series, format = plain, include = [], logarithmic = false, shared, reference } = options;
  const values = series.flatMap(valuesOf);
  const x = scaleFor(shared?.x ?? series.flatMap(({ points }) => points.map((point) => point.x)));
  const extra = reference === undefined ? include : [...include, reference];
  const y = scaleFor(shared?.y ?? values, { include: extra, logarithmic });
  const drawn = series.map((line, index) => drawSeries(line, line.colour ?? index, x, y));
  const across =
    reference === undefined
      ? undefined
      : html`<line class="reference" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${down(y, reference)}" y2="${down(y, reference)}"/>`;
  return figure(options.title, series, html`${axes(x, y, format)}${across}${drawn}`, values.length === 0);
}

/** All values that a series draws. */
export const valuesOf = ({ points, intervals = [] }: Series): number[] => [
  ...points.map((point) => point.y),
  ...intervals.flatMap(({ low, high }) => [low, high]),
];

/** A chart of stacked shares that sum to 1; all series have points at the same steps. */
export function stackedChart({ title, series }: Pick<ChartOptions, 'title' | 'series'>): Html {
  const places = (series[0]?.points ?? []).map((point) => point.x);
  const x = scaleFor(places);
  const y = scaleFor([0, 1]);
  let below = places.map(() => 0);
  const areas = series.map(({ points, colour }, index) => {
    const above = below.map((base, i) => base + (points[i]?.y ?? 0));
    const edge = (heights: readonly number[], i: number) => `${right(x, places[i] ?? 0)},${down(y, heights[i] ?? 0)}`;
    const forth = places.map((_, i) => edge(above, i));
    const back = places.map((_, i) => edge(below, i)).reverse();
    below = above;
    return html`<polygon class="c${colour ?? index}" points="${[...forth, ...back].join(' ')}"/>`;
  });
  const format = (value: number) => `${Math.round(100 * value)} %`;
  return figure(title, series, html`<g class="areas">${areas}</g>${axes(x, y, format)}`, places.length === 0, true);
}

function figure(title: string, series: readonly Series[], drawing: Html, empty: boolean, areas = false): Html {
  const caption = html`<figcaption>${title}${legend(series, areas)}</figcaption>`;
  if (empty) return html`<figure>${caption}<p class="empty">nothing recorded</p></figure>`;
  return html`<figure>${caption}<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">${drawing}</svg></figure>`;
}

function legend(series: readonly Series[], areas: boolean): Html {
  if (series.length < 2) return html``;
  const entries = series.map(({ name, colour }, index) => {
    const which = colour ?? index;
    const line = areas
      ? html`<rect x="3" width="14" height="10" fill="currentColor" stroke="none"/>`
      : html`<line x1="0" x2="22" y1="5" y2="5" stroke-dasharray="${dashes(which)}"/>`;
    return html`<span class="c${which}"><svg class="swatch" viewBox="0 0 22 10" aria-hidden="true">${line}</svg>${name}</span>`;
  });
  return html`<span class="legend">${entries}</span>`;
}

function drawSeries({ points, intervals = [], marks = [], name }: Series, colour: number, x: Scale, y: Scale): Html {
  const kept = thin(points);
  const at = (point: Point) => `${right(x, point.x)},${down(y, point.y)}`;
  const line = html`<polyline points="${kept.map(at).join(' ')}" stroke-dasharray="${dashes(colour)}"/>`;
  const dot = (point: Point) =>
    html`<circle cx="${right(x, point.x)}" cy="${down(y, point.y)}" r="2.5"><title>${name}: ${significant(point.y)} at ${point.x}</title></circle>`;
  const bars = intervals.map(
    (bar) =>
      html`<line x1="${right(x, bar.x)}" x2="${right(x, bar.x)}" y1="${down(y, bar.low)}" y2="${down(y, bar.high)}"/>`,
  );
  const stars = marks.map(
    (mark) =>
      html`<circle class="mark" cx="${right(x, mark.x)}" cy="${down(y, mark.y)}" r="5"><title>${mark.text}</title></circle>`,
  );
  return html`<g class="series c${colour}">${bars}${line}${kept.length > MOST_DOTS ? [] : kept.map(dot)}${stars}</g>`;
}

function axes(x: Scale, y: Scale, format: (value: number) => string): Html {
  const rows = y.ticks.map((tick) => {
    const height = down(y, tick);
    return html`<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${height}" y2="${height}"/><text x="${LEFT - 5}" y="${height + 3.5}" text-anchor="end">${format(tick)}</text>`;
  });
  const columns = x.ticks.map(
    (tick) =>
      html`<text x="${right(x, tick)}" y="${HEIGHT - 6}" text-anchor="${x.place(tick) > 0.95 ? 'end' : 'middle'}">${wholeStep(tick)}</text>`,
  );
  return html`<g class="axes">${rows}${columns}</g>`;
}

/** A number as `0.5`, `40`, `0.0001` or `1e+6`. */
const plain = (value: number) => String(Number(value.toPrecision(3)));
const wholeStep = (step: number) => (Number.isInteger(step) ? String(step) : '');
const dashes = (colour: number) => DASHES[colour % DASHES.length] ?? '';
const right = (x: Scale, value: number) => round(LEFT + x.place(value) * (WIDTH - LEFT - RIGHT));
const down = (y: Scale, value: number) => round(HEIGHT - BOTTOM - y.place(value) * (HEIGHT - TOP - BOTTOM));
const round = (value: number) => Math.round(value * 10) / 10;
