import './sound-locale.js';
import { percent, significant } from '@drmas/engine/host';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { alignedData, type Line } from './chart-data.js';
import { type ChartStyle, chartOptions, shapeOf } from './chart-options.js';
import { colourClass, dashOf, useTheme } from './theme.js';

/** A piece of a line in the colour and the dashes of its number. */
export function Swatch({ colour }: { readonly colour: number }) {
  return (
    <svg class="swatch" viewBox="0 0 22 10" aria-hidden="true">
      <line x1="0" x2="22" y1="5" y2="5" stroke-dasharray={dashOf(colour).join(' ')} />
    </svg>
  );
}

interface ChartProps extends ChartStyle {
  readonly title: string;
  readonly hint?: string | undefined;
  readonly lines: readonly Line[];
  readonly height?: number;
  /** Receives the step that was clicked. */
  readonly onPick?: ((step: number) => void) | undefined;
}

/** A chart of lines over steps. Its head names the lines with their values under the pointer, or the last ones. */
export function Chart({ title, hint, lines, height = 170, onPick, ...style }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const theme = useTheme();
  const data = useMemo(() => alignedData(lines), [lines]);
  const latest = useRef({ lines, data });
  latest.current = { lines, data };
  const head = useRef<HTMLElement>(null);
  const empty = data.xs.length === 0;
  const shape = JSON.stringify([shapeOf(lines, style), style, height]);

  const show = (index: number | null) => showValues(head.current, latest.current.data, index, style.unit);

  useEffect(() => {
    const element = place.current;
    if (element === null || empty) return;
    const size = () => ({ width: Math.max(120, element.clientWidth), height });
    const options = chartOptions(() => latest.current.lines, style, theme, size(), show);
    const { xs, rows } = latest.current.data;
    const made = new uPlot(options, [xs, ...rows], element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shape, theme, empty]);

  useEffect(() => {
    plot.current?.setData([data.xs, ...data.rows]);
    show(null);
  });

  const pick = () => {
    const index = plot.current?.cursor.idx;
    const step = index === undefined || index === null ? undefined : data.xs[index];
    if (step !== undefined) onPick?.(step);
  };
  return (
    <figure class="chart" data-chart={title}>
      <figcaption ref={head} title={hint}>
        <span class="title">{title}</span>
        <span class="legend">
          {lines.map(({ name, colour }) => (
            <span key={name} class={colourClass(colour)}>
              {lines.length > 1 && <Swatch colour={colour} />}
              {(lines.length > 1 || name !== title) && name}
              <b data-value />
            </span>
          ))}
        </span>
      </figcaption>
      {empty ? (
        <p class="empty">nothing recorded yet</p>
      ) : (
        // biome-ignore lint/a11y: the lists of steps show the same to keyboard users
        <div ref={place} class={onPick === undefined ? 'plot' : 'plot picks'} onClick={pick} />
      )}
    </figure>
  );
}

/** Writes each line's value at a position, or its last one, and the step that they belong to. */
function showValues(
  head: HTMLElement | null,
  { xs, rows }: ReturnType<typeof alignedData>,
  index: number | null,
  unit: ChartStyle['unit'],
): void {
  if (head === null) return;
  const fields = head.querySelectorAll<HTMLElement>('[data-value]');
  for (const [i, field] of fields.entries()) {
    const row = rows[i] ?? [];
    const value = index === null ? row.findLast((one) => one !== null) : row[index];
    field.textContent = value === null || value === undefined ? '' : valueText(value, unit);
  }
  head.dataset.step = index === null ? '' : `step ${xs[index] ?? ''}`;
}

const valueText = (value: number, unit: ChartStyle['unit']) => (unit === 'share' ? percent(value) : significant(value));
