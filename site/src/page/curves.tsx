import { useMemo } from 'preact/hooks';
import { Chart } from '../../../dashboard/src/chart/chart.js';
import { type Line, pointsOf } from '../../../dashboard/src/chart/chart-data.js';
import { type RunView, successes, TRAILING, trailingMeans } from './run-view.js';
import { variants } from './variants.js';

const norms = ({ steps }: RunView) => steps.map(({ policies }) => policies.fixer?.gradientNorm ?? Number.NaN);
const repairs = ({ steps }: RunView) => steps.map(({ agents }) => agents.fixer?.rewardMean ?? Number.NaN);

/** The curves of the runs as they grow. */
export function Curves({ views }: { readonly views: readonly RunView[] }) {
  // Between two steps there is no value to draw.
  return useMemo(
    () => drawn(views),
    views.map(({ steps }) => steps),
  );
}

function drawn(views: readonly RunView[]) {
  const lines = (valuesOf: (run: RunView) => number[]): Line[] =>
    views.map((run, i) => {
      const steps = run.steps.map(({ step }) => step);
      return { name: variants[i]?.name ?? '', colour: i, points: pointsOf(steps, valuesOf(run)) };
    });
  const [passed, repaired] = [successes, repairs].map((of) => lines((run) => trailingMeans(of(run))));
  const smoothed = { hint: `Each point is the mean of the last ${TRAILING} steps.`, unit: 'share' } as const;
  return (
    <div class="curves">
      <Chart title="Episodes that pass" lines={passed ?? []} {...smoothed} sync="steps" />
      <Chart title="The fixer's repairs that pass" lines={repaired ?? []} {...smoothed} include={[0]} sync="steps" />
      <Chart title="The fixer's gradient norm" lines={lines(norms)} unit="number" logarithmic sync="steps" />
    </div>
  );
}
