const WIDTH = 120;
const HEIGHT = 26;

/** A small line of values without axes, from the lowest to the highest of them. */
export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  if (values.length < 2) return <span class="faint">–</span>;
  const low = values.reduce((a, b) => Math.min(a, b));
  const range = values.reduce((a, b) => Math.max(a, b)) - low || 1;
  const at = (value: number, i: number) => {
    const x = (i / (values.length - 1)) * (WIDTH - 4) + 2;
    return `${x.toFixed(1)},${(HEIGHT - 3 - ((value - low) / range) * (HEIGHT - 6)).toFixed(1)}`;
  };
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <polyline points={values.map(at).join(' ')} />
    </svg>
  );
}
