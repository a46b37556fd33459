/** Figures as SVG files that are readable on a light and on a dark page. */

export interface Series {
  readonly name: string;
  readonly points: readonly PlottedPoint[];
  /** Joins the points by a line. */
  readonly line?: boolean;
  /** A thin line without points, such as a single run behind a mean. Series of one name share its legend. */
  readonly thin?: boolean;
  /** A text beside the last point. */
  readonly end?: string;
}

export interface PlottedPoint {
  readonly x: number;
  readonly y: number;
  /** The ends of a vertical bar through the point. */
  readonly low?: number;
  readonly high?: number;
  /** A small point, such as a single run behind a mean. */
  readonly small?: boolean;
}

/** A share with its interval, in percent or points, at a place of the axis. */
export const gainPoint = (
  x: number,
  { mean: y, interval }: { readonly mean: number; readonly interval?: { readonly low: number; readonly high: number } },
): PlottedPoint => ({
  x,
  y: 100 * y,
  ...(interval === undefined ? {} : { low: 100 * interval.low, high: 100 * interval.high }),
});

export interface Figure {
  readonly title: string;
  readonly series: readonly Series[];
  readonly x: Axis;
  readonly y: Axis;
  /** The lines grow from left to right when the figure is opened, unless the reader wants less motion. */
  readonly moving?: boolean;
}

export interface Axis {
  readonly label: string;
  /** Values are powers of two apart. */
  readonly doublings?: boolean;
  readonly include?: readonly number[];
  /** Names at 0, 1, 2 ... in place of numbers. */
  readonly names?: readonly string[];
  /** A line across at this value. */
  readonly reference?: number;
}

const WIDTH = 640;
const HEIGHT = 360;
const LEFT = 58;
const RIGHT = 16;
/** The width at the right if texts stand beside last points. */
const RIGHT_WITH_TEXT = 70;
const TOP = 16;
const BOTTOM = 46;
const LEGEND_LINE = 18;
/** A legend: its most columns, and in pixels its mark, the gap after a text, and a letter on average. */
const LEGEND = { columns: 3, mark: 9, gap: 8, letter: 6.6 } as const;
/** More names than this are set in two rows. */
const MOST_NAMES_A_ROW = 4;

/**
 * Colours that colour-blind readers can distinguish, on white and on black (Okabe and Ito 2008, a little darker). A
 * figure brings its ground along, because a page may be dark for readers whose system is light.
 */
const STYLE = `
svg { font: 12px system-ui, sans-serif; fill: #444; stroke: none } .ground { fill: #fff }
.grid { stroke: #888; stroke-opacity: .25 } .reference { stroke: #888; stroke-dasharray: 4 3 }
.c0 { color: #777 } .c1 { color: #0072b2 } .c2 { color: #d55e00 } .c3 { color: #009e73 }
.c4 { color: #cc79a7 } .c5 { color: #b58900 } .c6 { color: #56b4e9 } .c7 { color: #8a63d2 }
.line { stroke: currentColor; fill: none; stroke-width: 1.8 } .point { fill: currentColor }
.bar { stroke: currentColor; stroke-width: 1.5 } .small { fill: currentColor; fill-opacity: .45 }
.thin { stroke-width: 1; stroke-opacity: .3 } .end { fill: currentColor; font-size: 14px; font-weight: 600 }
@media (prefers-color-scheme: dark) {
svg { fill: #ccc } .ground { fill: #0d1117 } .c0 { color: #aaa } .c1 { color: #58a6e8 }
}
`.trim();

/**
 * A curtain that opens over the lines. Without animation it is open. Motion that begins by itself may last 5 s without
 * a way to stop it (WCAG 2.2.2).
 */
const MOTION = `
#curtain rect { transform-origin: left }
@media (prefers-reduced-motion: no-preference) { #curtain rect { animation: open 5s linear } }
@keyframes open { from { transform: scaleX(0) } }
`.trim();

/** A text of a page as a text of a figure, which knows no Markdown. */
const escaped = (text: string) =>
  text.replaceAll('`', '').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const colour = (index: number) => `c${index % 8}`;
const fixed = (value: number) => String(Math.round(10 * value) / 10);

/** How many columns a legend of these names has: as many as the longest one leaves room for. */
function legendColumns(names: readonly string[], width: number): number {
  const longest = Math.max(1, ...names.map((name) => name.replaceAll('`', '').length));
  const fitting = Math.floor(width / (LEGEND.mark + LEGEND.letter * longest + LEGEND.gap));
  return Math.max(1, Math.min(LEGEND.columns, names.length, fitting));
}

/** The figure as the text of an SVG file. */
export function figureText({ title, series, x, y, moving = false }: Figure): string {
  const names = [...new Set(series.map(({ name }) => name))];
  const finite = series.flatMap(({ points }) => points.filter((point) => Number.isFinite(point.x + point.y)));
  const xs = placed(
    x,
    finite.map((point) => point.x),
  );
  const ys = placed(
    y,
    finite.flatMap(({ y: middle, low = middle, high = middle }) => [low, middle, high]),
  );
  const edge = WIDTH - (series.some(({ end }) => end !== undefined) ? RIGHT_WITH_TEXT : RIGHT);
  const columns = legendColumns(names, edge - LEFT);
  const height = HEIGHT + LEGEND_LINE * Math.ceil(names.length / columns);
  const right = (value: number) => fixed(LEFT + xs.place(value) * (edge - LEFT));
  const down = (value: number) => fixed(HEIGHT - BOTTOM - ys.place(value) * (HEIGHT - TOP - BOTTOM));
  const bottom = HEIGHT - BOTTOM;
  const crowded = (x.names?.length ?? 0) > MOST_NAMES_A_ROW;
  const grid = [
    ...ys.ticks.map(
      ({ at, text }) =>
        `<line class="grid" x1="${LEFT}" x2="${edge}" y1="${down(at)}" y2="${down(at)}"/>` +
        `<text x="${LEFT - 6}" y="${down(at)}" dy="4" text-anchor="end">${escaped(text)}</text>`,
    ),
    ...xs.ticks.map(
      ({ at, text }, i) =>
        `<text x="${right(at)}" y="${bottom + 16 + (crowded ? 14 * (i % 2) : 0)}" text-anchor="middle">${escaped(text)}</text>`,
    ),
    y.reference === undefined
      ? ''
      : `<line class="reference" x1="${LEFT}" x2="${edge}" y1="${down(y.reference)}" y2="${down(y.reference)}"/>`,
    x.reference === undefined
      ? ''
      : `<line class="reference" x1="${right(x.reference)}" x2="${right(x.reference)}" y1="${TOP}" y2="${bottom}"/>`,
    x.label === ''
      ? ''
      : `<text x="${(LEFT + edge) / 2}" y="${bottom + 36}" text-anchor="middle">${escaped(x.label)}</text>`,
    `<text transform="translate(14 ${(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(y.label)}</text>`,
  ];
  const drawn = series.map(({ name, points, line = false, thin = false, end }) => {
    const there = points.filter((point) => Number.isFinite(point.x + point.y));
    const path = there.map((point) => `${right(point.x)},${down(point.y)}`).join(' ');
    const marks = (thin ? [] : there).map(({ x: at, y: middle, low, high, small = false }) => {
      const bar =
        low === undefined || high === undefined
          ? ''
          : `<line class="bar" x1="${right(at)}" x2="${right(at)}" y1="${down(low)}" y2="${down(high)}"/>`;
      return `${bar}<circle class="${small ? 'small' : 'point'}" cx="${right(at)}" cy="${down(middle)}" r="${small ? 2.5 : 4}"/>`;
    });
    const curve = line || thin ? `<polyline class="line${thin ? ' thin' : ''}" points="${path}"/>` : '';
    const last = end === undefined ? undefined : there.at(-1);
    const text =
      last === undefined
        ? ''
        : `<text class="end" x="${right(last.x)}" y="${down(last.y)}" dx="8" dy="5">${escaped(end ?? '')}</text>`;
    return `<g class="${colour(names.indexOf(name))}">${curve}${marks.join('')}${text}</g>`;
  });
  const legend = names.map((name, index) => {
    const [column, row] = [index % columns, Math.floor(index / columns)];
    const [left, base] = [LEFT + (column * (edge - LEFT)) / columns, HEIGHT + row * LEGEND_LINE + 6];
    return (
      `<circle class="${colour(index)} point" cx="${fixed(left)}" cy="${base - 4}" r="4"/>` +
      `<text x="${fixed(left + LEGEND.mark)}" y="${base}">${escaped(name)}</text>`
    );
  });
  const curtain = `<clipPath id="curtain"><rect x="${LEFT - 6}" y="0" width="${WIDTH - LEFT + 6}" height="${HEIGHT}"/></clipPath>`;
  const lines = moving ? [curtain, '<g clip-path="url(#curtain)">', ...drawn, '</g>'] : drawn;
  const style = moving ? `${STYLE}\n${MOTION}` : STYLE;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">\n` +
    `<title>${escaped(title)}</title>\n<style>\n${style}\n</style>\n` +
    `<rect class="ground" width="${WIDTH}" height="${height}" rx="6"/>\n${[...grid.filter((line) => line !== ''), ...lines, ...legend].join('\n')}\n</svg>\n`
  );
}

interface Placed {
  place(value: number): number;
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
}

function placed({ doublings = false, include = [], names, reference }: Axis, values: readonly number[]): Placed {
  if (names !== undefined) {
    const width = Math.max(1, names.length);
    return { place: (value) => (value + 0.5) / width, ticks: names.map((text, at) => ({ at, text })) };
  }
  const all = [...values, ...include, ...(reference === undefined ? [] : [reference])];
  if (doublings) {
    const exponents = all.filter((value) => value > 0).map(Math.log2);
    const [low, high] = [Math.floor(Math.min(0, ...exponents)), Math.ceil(Math.max(1, ...exponents))];
    const ticks = Array.from({ length: high - low + 1 }, (_, i) => 2 ** (low + i));
    return {
      place: (value) => (Math.log2(Math.max(value, 2 ** low)) - low) / (high - low),
      ticks: ticks.map((at) => ({ at, text: at < 1 ? `1/${1 / at}` : String(at) })),
    };
  }
  const scale = scaleFor(all);
  return { place: scale.place, ticks: scale.ticks.map((at) => ({ at, text: String(Number(at.toPrecision(6))) })) };
}

// Scales: from values to positions in a drawing.

export interface Scale {
  /** The position of a value in [0, 1], 0 at the low end. */
  place(value: number): number;
  readonly ticks: readonly number[];
}

/** A linear scale with about `count` round numbers around [low, high], the ends included. */
export function linearScale(low: number, high: number, count = 4): Scale {
  const range = high - low || Math.abs(high) || 1;
  const rough = range / count;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * magnitude >= rough * 0.999) ?? 10) * magnitude;
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  const [from, to] = [first * step, last * step];
  return { place: (value) => (value - from) / (to - from), ticks };
}

/** The scale of a figure, which holds all values. */
export function scaleFor(values: readonly number[]): Scale {
  return values.length === 0 ? linearScale(0, 1) : linearScale(smallest(values), largest(values));
}

const smallest = (values: readonly number[]) => values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const largest = (values: readonly number[]) => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
