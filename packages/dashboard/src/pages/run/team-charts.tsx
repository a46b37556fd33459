/** The charts of a run that are about the whole team. */

import { measuresOf } from '@drmas/engine/nouns';
import { useMemo } from 'preact/hooks';
import type { AgentMeasure, EventsByKind } from '../../../../../src/runs/analysis.js';
import { Chart } from '../../chart/chart.js';
import { type Line, lineOver } from '../../chart/chart-data.js';
import { measurePoints, scorePoints } from '../../chart/points.js';
import { clean } from '../../parts/texts.js';
import { go } from '../../routes.js';
import type { HeardRun } from '../../run-store.js';

interface OfRun {
  readonly run: HeardRun;
}

export function ScoreChart({ run }: OfRun) {
  const { scores } = run.log;
  const lines = useMemo((): Line[] => {
    return [
      { name: 'avg@k', colour: 0, points: scorePoints(scores), dots: true },
      { ...lineOver(scores, 'pass@k', 1, ({ passAtK }) => passAtK), dots: true },
      { ...lineOver(scores, 'maj@k', 2, ({ majorityAtK }) => majorityAtK), dots: true },
    ];
  }, [scores]);
  return (
    <Chart
      title="held-out score"
      hint="Success on tasks that are never trained on; the bars are the interval of avg@k."
      lines={lines}
      unit="share"
      include={[0, 1]}
      sync="step"
    />
  );
}

/** The team's measures on held-out tasks besides its success; draws nothing if there are none. */
export function MetricsChart({ run }: OfRun) {
  const { scores } = run.log;
  const lines = useMemo((): Line[] => {
    const measured = scores.map((event) => ({ step: event.step, measures: measuresOf(event, scores) }));
    const names = [...new Set(measured.flatMap(({ measures }) => measures.map(([name]) => name)))];
    return names.map((name, colour) => ({
      name,
      colour,
      dots: true,
      points: measured.flatMap(({ step, measures }) =>
        measures.flatMap(([other, y]) => (other === name ? [{ x: step, y }] : [])),
      ),
    }));
  }, [scores]);
  if (lines.length === 0) return null;
  return <Chart title="held-out metrics" lines={lines} unit="number" sync="step" />;
}

export function RewardChart({ run }: OfRun) {
  const { steps } = run.log;
  const lines = useMemo((): Line[] => {
    const parts = namedLines(steps, ({ parts }) => parts, 1);
    return [lineOver(steps, 'reward', 0, ({ reward }) => reward?.mean), ...(parts.length < 2 ? [] : parts)];
  }, [steps]);
  return (
    <Chart
      title="training reward"
      hint="The team's mean reward of each step, with its named parts if it has several."
      lines={lines}
      unit="number"
      sync="step"
      onPick={showEpisodes(run.name)}
    />
  );
}

export function PartsCharts({ run }: OfRun) {
  const { steps, agents } = run.log;
  const charts = useMemo(
    () => agents.map((agent) => ({ agent, lines: namedLines(steps, ({ agents: of }) => of[agent]?.parts) })),
    [steps, agents],
  );
  return (
    <>
      {charts.map(
        ({ agent, lines }) =>
          lines.length > 0 && (
            <Chart
              key={agent}
              title={`parts of the reward of ${clean(agent)}`}
              hint="The named parts of its reward, means over its turns."
              lines={lines}
              unit="number"
              sync="step"
              onPick={showEpisodes(run.name)}
            />
          ),
      )}
    </>
  );
}

/** The team's measures in training besides its reward; draws nothing if there are none. */
export function TrainingMetricsChart({ run }: OfRun) {
  const { steps } = run.log;
  const lines = useMemo(() => namedLines(steps, ({ metrics }) => metrics), [steps]);
  if (lines.length === 0) return null;
  return (
    <Chart
      title="training metrics"
      hint="The team's measures besides its reward, means over the episodes of each step that have them."
      lines={lines}
      unit="number"
      sync="step"
      onPick={showEpisodes(run.name)}
    />
  );
}

/** A line for each name that a step's record ever has, in the order of the names. */
function namedLines(
  steps: readonly EventsByKind['steps'][number][],
  of: (step: EventsByKind['steps'][number]) => Readonly<Record<string, number>> | undefined,
  firstColour = 0,
): Line[] {
  const names = [...new Set(steps.flatMap((step) => Object.keys(of(step) ?? {})))].sort();
  return names.map((name, i) => lineOver(steps, name, firstColour + i, (step) => of(step)?.[name]));
}

export function GroupsChart({ run }: OfRun) {
  const { steps } = run.log;
  const lines = useMemo((): Line[] => {
    const counted = steps.filter(({ groups }) => groups !== undefined);
    const kind = (name: string, colour: number, of: (groups: (typeof counted)[number]['groups']) => number): Line =>
      lineOver(
        counted,
        name,
        colour,
        ({ groups }) => of(groups) / Math.max(1, groups.allRight + groups.mixed + groups.allWrong),
      );
    return [
      kind('all right', 2, ({ allRight }) => allRight),
      kind('mixed', 0, ({ mixed }) => mixed),
      kind('all wrong', 1, ({ allWrong }) => allWrong),
    ];
  }, [steps]);
  return (
    <Chart
      title="groups by outcome"
      hint="Only mixed groups teach: if all episodes of a task have the same result, there is nothing to compare."
      lines={lines}
      unit="share"
      include={[0, 1]}
      sync="step"
      onPick={showEpisodes(run.name)}
    />
  );
}

export function WarmStartChart({ run }: OfRun) {
  const { warmups } = run.log;
  const lines = useMemo((): Line[] => {
    const policies = [...new Set(warmups.map(({ policy }) => policy))];
    return policies.flatMap((policy, i) => {
      const ofPolicy = warmups.filter((event) => event.policy === policy);
      const named = (name: string) => (policies.length > 1 ? `${policy}, ${name}` : name);
      return [
        lineOver(ofPolicy, named('training'), 2 * i, ({ loss }) => loss),
        lineOver(ofPolicy, named('held out'), 2 * i + 1, ({ heldOutLoss }) => heldOutLoss),
      ];
    });
  }, [warmups]);
  if (warmups.length === 0) return null;
  return (
    <Chart
      title="warm-start loss"
      hint="Cross-entropy on demonstrations, before the first step of reinforcement."
      lines={lines}
      unit="number"
      include={[0]}
    />
  );
}

/** Shows the episodes of a step, or the next ones that were kept. */
const showEpisodes = (name: string) => (step: number) =>
  go({ page: 'run', name, tab: 'episodes', query: { step: String(step) } });

/** One measurement, a line an agent. Draws nothing if the run has not recorded it. */
export function AgentChart({ measure, run }: { readonly measure: AgentMeasure; readonly run: HeardRun }) {
  const { steps, agents, spikes } = run.log;
  const lines = useMemo(
    () =>
      agents.map((agent, colour): Line => {
        const marks = measure.spikes
          ? spikes.filter((spike) => (spike.agent ?? spike.policy) === agent).map(({ step }) => step)
          : [];
        return { name: agent, colour, points: measurePoints(measure, agent, steps), marks, dots: true };
      }),
    [measure, steps, agents, spikes],
  );
  if (lines.every(({ points }) => points.length === 0)) return null;
  return <Chart {...measure} lines={lines} sync="step" onPick={showEpisodes(run.name)} />;
}
