/** Figures as SVG files that are readable on a light and on a dark page. */
import { scaleFor } from './scale.js';

export interface Series {
  readonly name: string;
  readonly points: readonly PlottedPoint[];
  /** Joins the points by a line. */
  readonly line?: boolean;
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

export interface Figure {
  readonly title: string;
  readonly series: readonly Series[];
  readonly x: Axis;
  readonly y: Axis;
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
const TOP = 16;
const BOTTOM = 46;
const LEGEND_LINE = 18;
/** More names than this are set in two rows. */
const MOST_NAMES_A_ROW = 4;

/** Colours that colour-blind readers can distinguish, on white and on black (Okabe and Ito 2008, a little darker). */
const STYLE = `
svg { font: 12px system-ui, sans-serif; fill: #444; stroke: none }
.grid { stroke: #888; stroke-opacity: .25 } .reference { stroke: #888; stroke-dasharray: 4 3 }
.c0 { color: #777 } .c1 { color: #0072b2 } .c2 { color: #d55e00 } .c3 { color: #009e73 }
.c4 { color: #cc79a7 } .c5 { color: #b58900 } .c6 { color: #56b4e9 } .c7 { color: #8a63d2 }
.line { stroke: currentColor; fill: none; stroke-width: 1.8 } .point { fill: currentColor }
.bar { stroke: currentColor; stroke-width: 1.5 } .small { fill: currentColor; fill-opacity: .45 }
@media (prefers-color-scheme: dark) { svg { fill: #ccc } .c0 { color: #aaa } .c1 { color: #58a6e8 } }
`.trim();

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const fixed = (value: number) => String(Math.round(10 * value) / 10);

/** The figure as the text of an SVG file. */
export function figureText({ title, series, x, y }: Figure): string {
  const height = HEIGHT + LEGEND_LINE * Math.ceil(series.length / 3);
  const finite = series.flatMap(({ points }) => points.filter((point) => Number.isFinite(point.x + point.y)));
  const xs = placed(
    x,
    finite.map((point) => point.x),
  );
  const ys = placed(
    y,
    finite.flatMap(({ y: middle, low = middle, high = middle }) => [low, middle, high]),
  );
  const right = (value: number) => fixed(LEFT + xs.place(value) * (WIDTH - LEFT - RIGHT));
  const down = (value: number) => fixed(HEIGHT - BOTTOM - ys.place(value) * (HEIGHT - TOP - BOTTOM));
  const bottom = HEIGHT - BOTTOM;
  const crowded = (x.names?.length ?? 0) > MOST_NAMES_A_ROW;
  const grid = [
    ...ys.ticks.map(
      ({ at, text }) =>
        `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${down(at)}" y2="${down(at)}"/>` +
        `<text x="${LEFT - 6}" y="${down(at)}" dy="4" text-anchor="end">${escaped(text)}</text>`,
    ),
    ...xs.ticks.map(
      ({ at, text }, i) =>
        `<text x="${right(at)}" y="${bottom + 16 + (crowded ? 14 * (i % 2) : 0)}" text-anchor="middle">${escaped(text)}</text>`,
    ),
    y.reference === undefined
      ? ''
      : `<line class="reference" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${down(y.reference)}" y2="${down(y.reference)}"/>`,
    x.reference === undefined
      ? ''
      : `<line class="reference" x1="${right(x.reference)}" x2="${right(x.reference)}" y1="${TOP}" y2="${bottom}"/>`,
    x.label === ''
      ? ''
      : `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${bottom + 36}" text-anchor="middle">${escaped(x.label)}</text>`,
    `<text transform="translate(14 ${(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(y.label)}</text>`,
  ];
  const drawn = series.map(({ name, points, line = false }, index) => {
    const there = points.filter((point) => Number.isFinite(point.x + point.y));
    const path = there.map((point) => `${right(point.x)},${down(point.y)}`).join(' ');
    const marks = there.map(({ x: at, y: middle, low, high, small = false }) => {
      const bar =
        low === undefined || high === undefined
          ? ''
          : `<line class="bar" x1="${right(at)}" x2="${right(at)}" y1="${down(low)}" y2="${down(high)}"/>`;
      return `${bar}<circle class="${small ? 'small' : 'point'}" cx="${right(at)}" cy="${down(middle)}" r="${small ? 2.5 : 4}"/>`;
    });
    const [column, row] = [index % 3, Math.floor(index / 3)];
    const [left, base] = [LEFT + (column * (WIDTH - LEFT - RIGHT)) / 3, HEIGHT + row * LEGEND_LINE + 6];
    const legend = `<circle class="point" cx="${fixed(left)}" cy="${base - 4}" r="4"/>`;
    return (
      `<g class="c${index % 8}">${line ? `<polyline class="line" points="${path}"/>` : ''}${marks.join('')}${legend}</g>` +
      `<text x="${fixed(left + 9)}" y="${base}">${escaped(name)}</text>`
    );
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">\n` +
    `<title>${escaped(title)}</title>\n<style>\n${STYLE}\n</style>\n${[...grid.filter((line) => line !== ''), ...drawn].join('\n')}\n</svg>\n`
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
