import { useMemo } from 'preact/hooks';
import { type AgentMeasure, valuesOf } from '../../../../src/runs/analysis.js';
import { Chart } from '../../chart/chart.js';
import { type Line, pointsOf } from '../../chart/chart-data.js';
import { go } from '../../routes.js';
import type { HeardRun } from '../../run-store.js';

/** Shows the episodes of a step, or the next ones that were kept. */
export const showEpisodes = (name: string) => (step: number) =>
  go({ page: 'run', name, tab: 'episodes', query: { step: String(step) } });

/** One measurement, a line an agent. Draws nothing if the run has not recorded it. */
export function AgentChart({ measure, run }: { readonly measure: AgentMeasure; readonly run: HeardRun }) {
  const { steps, agents, spikes } = run.log;
  const lines = useMemo(
    () =>
      agents.map((agent, colour): Line => {
        const values = valuesOf(measure, agent, steps);
        const at = steps.map(({ step }) => step);
        const marks = measure.spikes
          ? spikes.filter((spike) => (spike.agent ?? spike.policy) === agent).map(({ step }) => step)
          : [];
        return { name: agent, colour, points: pointsOf(at, values), marks, dots: true };
      }),
    [measure, steps, agents, spikes],
  );
  if (lines.every(({ points }) => points.length === 0)) return null;
  return <Chart {...measure} lines={lines} sync="step" onPick={showEpisodes(run.name)} />;
}
