import { percent } from '@drmas/engine/host';
import type uPlot from 'uplot';
import { extentOf, type Line } from './chart-data.js';
import { dashOf, type Theme } from './theme.js';

export interface ChartStyle {
  readonly unit: 'number' | 'share';
  readonly include?: readonly number[] | undefined;
  readonly logarithmic?: boolean | undefined;
  readonly reference?: number | undefined;
  /** Draws the intervals of points as bands in place of bars. */
  readonly bands?: boolean | undefined;
  /** Charts with the same key show the same step under the pointer. */
  readonly sync?: string | undefined;
}

const FONT = '11px system-ui, sans-serif';
const MOST_DOTS = 40;

/** The most characters of a tick that the place beside an axis has room for. */
const LONGEST_TICK = 7;
/** Ticks that are nearer to each other need an exponent. */
const LEAST_INCREMENT = 1e-5;

/**
 * A tick with the digits that tell it from its neighbours.
 * @param increment The distance of two ticks, 0 if it varies
 */
export function tickText(unit: ChartStyle['unit'], value: number, increment: number): string {
  const scale = unit === 'share' ? 100 : 1;
  const [, fraction = ''] = String(Number((scale * increment).toPrecision(3))).split('.');
  if (unit === 'share') return percent(value, fraction.length);
  const digits = increment < LEAST_INCREMENT ? value.toPrecision(3) : value.toFixed(fraction.length);
  const text = String(Number(digits));
  return text.length <= LONGEST_TICK ? text : Number(value.toPrecision(3)).toExponential();
}

/** The data that a chart's options depend on: as a run grows, dots disappear and an axis may become logarithmic. */
export function shapeOf(lines: readonly Line[], style: ChartStyle): string {
  const { logarithmic } = extentOfChart(lines, style);
  return [logarithmic, ...lines.map((line) => [line.name, line.colour, hasDots(line)])].join('\n');
}

const hasDots = ({ dots = false, points }: Line) => dots && points.length <= MOST_DOTS;

function extentOfChart(lines: readonly Line[], { reference, include = [], logarithmic = false }: ChartStyle) {
  return extentOf(lines, reference === undefined ? include : [...include, reference], logarithmic);
}

/** The options of a chart of lines. `lines()` returns the current lines, which a live run makes longer. */
export function chartOptions(
  lines: () => readonly Line[],
  style: ChartStyle,
  theme: Theme,
  size: { readonly width: number; readonly height: number },
  onCursor: (index: number | null) => void,
): uPlot.Options {
  const colourOf = (index: number) => theme.colours[index % theme.colours.length] ?? theme.ink;
  const extent = () => extentOfChart(lines(), style);
  const { logarithmic } = extent();
  const axis = { stroke: theme.faint, font: FONT, grid: { stroke: theme.grid, width: 1 }, ticks: { show: false } };
  return {
    ...size,
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: {
      points: { size: 6 },
      drag: { x: true, y: false },
      ...(style.sync === undefined ? {} : { sync: { key: style.sync } }),
    },
    scales: {
      x: { time: false },
      y: {
        distr: logarithmic ? 3 : 1,
        range: () => {
          const { low, high } = extent();
          if (logarithmic) return [low / 1.2, high * 1.8];
          const room = (high - low || Math.abs(high) || 1) * 0.06;
          // An axis that begins or ends with a required value needs no margin there.
          const [from, to] = [style.include?.includes(low) ? low : low - room, high + room];
          return [from, style.include?.includes(high) && high !== 0 ? high + room / 2 : to];
        },
      },
    },
    axes: [
      {
        ...axis,
        size: 24,
        gap: 4,
        values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : '')),
      },
      {
        ...axis,
        size: 48,
        gap: 4,
        space: 28,
        ...(logarithmic ? { splits: (_: uPlot, __: number, low: number, high: number) => powersOfTen(low, high) } : {}),
        values: (_, ticks, __, ___, increment) =>
          ticks.map((tick) => (tick === null ? '' : tickText(style.unit, tick, logarithmic ? 0 : increment))),
      },
    ],
    series: [
      {},
      ...lines().map((line) => ({
        label: line.name,
        stroke: colourOf(line.colour),
        width: 1.6,
        dash: [...dashOf(line.colour)],
        spanGaps: true,
        points: { show: hasDots(line), size: 5, fill: colourOf(line.colour) },
      })),
    ],
    hooks: {
      drawClear: [(plot) => (style.bands === true ? drawBands(plot, lines(), colourOf) : undefined)],
      draw: [
        (plot) => {
          if (style.reference !== undefined) drawReference(plot, style.reference, theme.faint);
          if (style.bands !== true) drawIntervals(plot, lines(), colourOf);
          drawMarks(plot, lines(), theme.mark);
        },
      ],
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
    },
  };
}

function powersOfTen(low: number, high: number): number[] {
  const first = Math.ceil(Math.log10(low));
  const last = Math.floor(Math.log10(high));
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => 10 ** (first + i));
}

const across = (plot: uPlot, x: number) => plot.valToPos(x, 'x', true);
const down = (plot: uPlot, y: number) => plot.valToPos(y, 'y', true);

function inside(plot: uPlot, draw: (context: CanvasRenderingContext2D) => void): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx);
  ctx.restore();
}

function drawReference(plot: uPlot, at: number, colour: string): void {
  inside(plot, (context) => {
    const y = down(plot, at);
    context.strokeStyle = colour;
    context.setLineDash([5, 5]);
    context.beginPath();
    context.moveTo(plot.bbox.left, y);
    context.lineTo(plot.bbox.left + plot.bbox.width, y);
    context.stroke();
  });
}

function drawIntervals(plot: uPlot, lines: readonly Line[], colourOf: (index: number) => string): void {
  inside(plot, (context) => {
    context.setLineDash([]);
    context.lineWidth = 1.2 * devicePixelRatio;
    context.globalAlpha = 0.7;
    for (const { colour, points } of lines) {
      context.strokeStyle = colourOf(colour);
      for (const { x, low, high } of points) {
        if (low === undefined || high === undefined) continue;
        context.beginPath();
        context.moveTo(across(plot, x), down(plot, low));
        context.lineTo(across(plot, x), down(plot, high));
        context.stroke();
      }
    }
  });
}

function drawBands(plot: uPlot, lines: readonly Line[], colourOf: (index: number) => string): void {
  inside(plot, (context) => {
    context.globalAlpha = 0.16;
    for (const { colour, points } of lines) {
      const banded = points.filter(({ low, high }) => low !== undefined && high !== undefined);
      if (banded.length < 2) continue;
      context.fillStyle = colourOf(colour);
      context.beginPath();
      for (const { x, y, high = y } of banded) context.lineTo(across(plot, x), down(plot, high));
      for (const { x, y, low = y } of banded.toReversed()) context.lineTo(across(plot, x), down(plot, low));
      context.fill();
    }
  });
}

function drawMarks(plot: uPlot, lines: readonly Line[], colour: string): void {
  inside(plot, (context) => {
    context.strokeStyle = colour;
    context.setLineDash([]);
    context.lineWidth = 1.6 * devicePixelRatio;
    for (const { marks = [], points } of lines) {
      for (const step of marks) {
        const point = points.find(({ x }) => x === step);
        if (point === undefined) continue;
        context.beginPath();
        context.arc(across(plot, step), down(plot, point.y), 4.5 * devicePixelRatio, 0, 2 * Math.PI);
        context.stroke();
      }
    }
  });
}
