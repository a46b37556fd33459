/** The charts of a run that are about the whole team. */
import { useMemo } from 'preact/hooks';
import { measuresOf } from '../../../../src/core/evaluation/measures.js';
import { Chart } from '../../chart/chart.js';
import { type Line, pointsOf } from '../../chart/chart-data.js';
import type { HeardRun } from '../../run-store.js';
import { showEpisodes } from './agent-chart.js';

interface OfRun {
  readonly run: HeardRun;
}

export function ScoreChart({ run }: OfRun) {
  const { evaluations } = run.log;
  const lines = useMemo((): Line[] => {
    const at = evaluations.map(({ step }) => step);
    const average = evaluations.map(({ step, averageAtK, interval: { low, high } }) => ({
      x: step,
      y: averageAtK,
      low,
      high,
    }));
    return [
      { name: 'avg@k', colour: 0, points: average, dots: true },
      {
        name: 'pass@k',
        colour: 1,
        points: pointsOf(
          at,
          evaluations.map(({ passAtK }) => passAtK),
        ),
        dots: true,
      },
      {
        name: 'maj@k',
        colour: 2,
        points: pointsOf(
          at,
          evaluations.map(({ majorityAtK }) => majorityAtK),
        ),
        dots: true,
      },
    ];
  }, [evaluations]);
  return (
    <Chart
      title="held-out score"
      hint="Success on tasks that are never trained on; the bars are the bootstrap interval of avg@k."
      lines={lines}
      unit="share"
      include={[0, 1]}
      sync="step"
    />
  );
}

/** What the team measures on held-out tasks besides its success; nothing where it measures nothing. */
export function MetricsChart({ run }: OfRun) {
  const { evaluations } = run.log;
  const lines = useMemo((): Line[] => {
    const names = [...new Set(evaluations.flatMap((event) => measuresOf(event).map(([name]) => name)))];
    return names.map((name, colour) => ({
      name,
      colour,
      dots: true,
      points: evaluations.flatMap((event) =>
        measuresOf(event).flatMap(([other, y]) => (other === name ? [{ x: event.step, y }] : [])),
      ),
    }));
  }, [evaluations]);
  if (lines.length === 0) return null;
  return <Chart title="held-out metrics" lines={lines} unit="number" sync="step" />;
}

export function RewardChart({ run }: OfRun) {
  const { steps } = run.log;
  const lines = useMemo((): Line[] => {
    const at = steps.map(({ step }) => step);
    const parts = [...new Set(steps.flatMap(({ parts = {} }) => Object.keys(parts)))].sort();
    const named = parts.length < 2 ? [] : parts;
    return [
      {
        name: 'reward',
        colour: 0,
        points: pointsOf(
          at,
          steps.map(({ reward }) => reward.mean),
        ),
      },
      ...named.map((part, i) => ({
        name: part,
        colour: i + 1,
        points: pointsOf(
          at,
          steps.map(({ parts = {} }) => parts[part] ?? Number.NaN),
        ),
      })),
    ];
  }, [steps]);
  return (
    <Chart
      title="training reward"
      hint="The team's mean reward of each step, with its named parts where it has several."
      lines={lines}
      unit="number"
      sync="step"
      onPick={showEpisodes(run.name)}
    />
  );
}

export function GroupsChart({ run }: OfRun) {
  const { steps } = run.log;
  const lines = useMemo((): Line[] => {
    const counted = steps.filter(({ groups }) => groups !== undefined);
    const at = counted.map(({ step }) => step);
    const kind = (name: string, colour: number, of: (groups: (typeof counted)[number]['groups']) => number): Line => ({
      name,
      colour,
      points: pointsOf(
        at,
        counted.map(({ groups }) => of(groups) / Math.max(1, groups.allRight + groups.mixed + groups.allWrong)),
      ),
    });
    return [
      kind('all right', 2, ({ allRight }) => allRight),
      kind('mixed', 0, ({ mixed }) => mixed),
      kind('all wrong', 1, ({ allWrong }) => allWrong),
    ];
  }, [steps]);
  return (
    <Chart
      title="groups by outcome"
      hint="Only mixed groups teach: where all episodes of a task end alike, there is nothing to compare."
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
      const own = warmups.filter((event) => event.policy === policy);
      const at = own.map(({ step }) => step);
      const line = (name: string, colour: number, values: readonly number[]): Line => ({
        name: policies.length > 1 ? `${policy}, ${name}` : name,
        colour,
        points: pointsOf(at, values),
      });
      return [
        line(
          'training',
          2 * i,
          own.map(({ loss }) => loss),
        ),
        line(
          'held out',
          2 * i + 1,
          own.map(({ heldOutLoss }) => heldOutLoss ?? Number.NaN),
        ),
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
