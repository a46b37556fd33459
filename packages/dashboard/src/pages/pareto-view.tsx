import { significant } from '@drmas/engine/host';
import type { ParetoPicture, ParetoPoint } from '../../../../src/runs/analysis.js';
import { Swatch } from '../chart/chart.js';
import { colourClass } from '../chart/theme.js';
import { Table } from '../parts/table.js';
import { clean } from '../parts/texts.js';

interface ParetoViewProps {
  readonly picture: ParetoPicture;
  /** The variants of the ablation, whose order gives the colours. */
  readonly variants: readonly string[];
}

/** Variants by the named parts of their reward, with the Pareto front; for two parts also a picture. */
export function ParetoView({ picture, variants }: ParetoViewProps) {
  const { parts, points, hypervolume } = picture;
  const rows = points.map(({ variant, values, front }) => {
    const colour = variants.indexOf(variant);
    return [
      <span key="name" class={colourClass(colour)}>
        <Swatch colour={colour} /> {clean(variant)}
      </span>,
      ...values.map(significant),
      front ? 'on the front' : '',
    ];
  });
  return (
    <>
      <h2>Pareto front</h2>
      <Table header={['variant', ...parts.map(clean), '']} rows={rows} />
      <p class="faint">
        Means of the last evaluations. On the front: no variant is at least as good in all parts and better in one.
        {hypervolume === undefined
          ? ''
          : ` Together they cover ${hypervolume.toFixed(2)} of the box between the worst and the best value of each part.`}
      </p>
      {parts.length === 2 && <Scatter picture={picture} variants={variants} />}
    </>
  );
}

const SIZE = { width: 360, height: 240, margin: 36 };

/** The first part to the right, the second upwards; points on the front are joined. */
function Scatter({ picture: { parts, points }, variants }: ParetoViewProps) {
  const { width, height, margin } = SIZE;
  const placed = points.map((point) => ({
    ...point,
    x: margin + share(points, point, 0) * (width - 2 * margin),
    y: height - margin - share(points, point, 1) * (height - 2 * margin),
  }));
  const front = placed.filter((point) => point.front).sort((a, b) => a.x - b.x);
  return (
    <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label="Pareto front">
      <polyline
        points={front.map(({ x, y }) => `${x},${y}`).join(' ')}
        fill="none"
        stroke="currentColor"
        stroke-dasharray="3 3"
        opacity="0.5"
      />
      {placed.map(({ variant, x, y, values, front }) => (
        <g key={variant} class={colourClass(variants.indexOf(variant))}>
          <circle cx={x} cy={y} r="5" fill={front ? 'currentColor' : 'none'} stroke="currentColor">
            <title>{`${clean(variant)}: ${values.map(significant).join(', ')}`}</title>
          </circle>
        </g>
      ))}
      <text x={width / 2} y={height - 8} text-anchor="middle" fill="currentColor" font-size="11">
        {clean(parts[0] ?? '')}
      </text>
      <text
        x="12"
        y={height / 2}
        text-anchor="middle"
        fill="currentColor"
        font-size="11"
        transform={`rotate(-90 12 ${height / 2})`}
      >
        {clean(parts[1] ?? '')}
      </text>
    </svg>
  );
}

/** The position of a point between the lowest and the highest value of a part, 0..1. */
function share(points: readonly ParetoPoint[], { values }: ParetoPoint, part: number): number {
  const all = points.map((point) => point.values[part] ?? 0);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return high === low ? 0 : ((values[part] ?? 0) - low) / (high - low);
}
