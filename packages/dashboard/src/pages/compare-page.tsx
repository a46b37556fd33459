import { useMemo } from 'preact/hooks';
import { type AgentMeasure, mainMeasures } from '../../../../src/runs/analysis.js';
import { Chart, Swatch } from '../chart/chart.js';
import { type Line, lineOver } from '../chart/chart-data.js';
import { measurePoints, scorePoints } from '../chart/points.js';
import { colourClass } from '../chart/theme.js';
import { StateBadge } from '../parts/state-badge.js';
import { Table } from '../parts/table.js';
import { clean, intervalText, pointsText, scoreText } from '../parts/texts.js';
import { runAddress } from '../routes.js';
import { type HeardRun, useHeard } from '../run-store.js';

/** Runs drawn over one another: a colour a run, a chart a measurement of an agent, and the settings that differ. */
export function ComparePage({ names }: { readonly names: readonly string[] }) {
  const { runs: heard, problem } = useHeard(names);
  const runs = useMemo(() => names.flatMap((name) => heard.get(name) ?? []), [names, heard]);
  if (problem !== undefined) return <p class="notice bad">{clean(problem)}</p>;
  if (runs.length === 0) return <p class="empty">reading {names.length} runs …</p>;
  const agents = [...new Set(runs.flatMap(({ log }) => log.agents))].sort();
  return (
    <>
      <div class="controls">
        <h1>{runs.length} runs over one another</h1>
      </div>
      <Summary runs={runs} />
      <div class="grid">
        <Overlay title="held-out score (avg@k)" unit="share" include={[0, 1]} runs={runs} of={scoreLine} />
        <Overlay title="training reward" unit="number" runs={runs} of={rewardLine} />
      </div>
      <Differences runs={runs} />
      {agents.map((agent) => (
        <section key={agent}>
          <h2>{clean(agent)}</h2>
          <div class="grid">
            {mainMeasures.map((measure) => (
              <AgentOverlay key={measure.key} agent={agent} measure={measure} runs={runs} />
            ))}
          </div>
        </section>
      ))}
      <Settings runs={runs} />
    </>
  );
}

/** The last part of a run's name, if no other run's name ends with it. */
function shortName(name: string, runs: readonly HeardRun[]): string {
  const last = (full: string) => full.split('/').at(-1) ?? full;
  return runs.filter((run) => last(run.name) === last(name)).length === 1 ? last(name) : name;
}

interface OverlayProps extends Pick<AgentMeasure, 'title' | 'unit' | 'include' | 'logarithmic' | 'reference'> {
  readonly hint?: string | undefined;
  readonly runs: readonly HeardRun[];
  readonly of: (run: HeardRun) => Pick<Line, 'points' | 'dots'>;
}

function Overlay({ runs, of, ...chart }: OverlayProps) {
  const lines = useMemo(
    () => runs.map((run, colour): Line => ({ name: shortName(run.name, runs), colour, ...of(run) })),
    [runs, of],
  );
  if (lines.every(({ points }) => points.length === 0)) return null;
  return <Chart {...chart} lines={lines} sync="step" />;
}

const scoreLine = ({ log }: HeardRun) => ({ points: scorePoints(log.scores), dots: true });

const rewardLine = ({ log: { steps } }: HeardRun) => ({
  points: lineOver(steps, 'reward', 0, ({ reward }) => reward?.mean).points,
});

interface AgentOverlayProps {
  readonly agent: string;
  readonly measure: AgentMeasure;
  readonly runs: readonly HeardRun[];
}

function AgentOverlay({ agent, measure, runs }: AgentOverlayProps) {
  const of = useMemo(
    () => (run: HeardRun) => ({ points: measurePoints(measure, agent, run.log.steps) }),
    [agent, measure],
  );
  return <Overlay {...measure} runs={runs} of={of} />;
}

function Summary({ runs }: { readonly runs: readonly HeardRun[] }) {
  const rows = runs.map(({ name, listed }, i) => {
    const named = (
      <span key="name" class={colourClass(i)}>
        <Swatch colour={i} /> <a href={runAddress(name)}>{clean(name)}</a>
      </span>
    );
    if (listed === undefined || listed.state === 'unreadable') return [named, 'unreadable', '', '', '', '', '', ''];
    const { first, last, headline, estimator, seed, steps, spikes, state } = listed;
    return [
      named,
      <StateBadge key="state" state={state} />,
      clean(estimator ?? ''),
      seed ?? '',
      steps,
      first === null ? '' : scoreText(first, headline),
      last === null
        ? ''
        : `${scoreText(last, headline)}${headline === 'reward' ? ' reward' : ` ${intervalText(last)}`}`,
      spikes,
    ];
  });
  return (
    <Table
      header={['run', 'state', 'estimator', 'seed', 'steps', 'score at first', 'score at last', 'spikes']}
      rows={rows}
    />
  );
}

/** The difference to the first run at every evaluation that both have. */
function Differences({ runs }: { readonly runs: readonly HeardRun[] }) {
  const [first, ...others] = runs;
  if (first === undefined || others.length === 0) return null;
  const steps = first.log.scores
    .map(({ step }) => step)
    .filter((step) => others.every(({ log }) => log.scores.some((event) => event.step === step)));
  const scoreAt = ({ log }: HeardRun, step: number) => log.scores.find((event) => event.step === step)?.averageAtK ?? 0;
  const rows = others.map((run) => [
    clean(run.name),
    ...steps.map((step) => {
      const points = scoreAt(run, step) - scoreAt(first, step);
      return (
        <span key={step} class={points > 0 ? 'gain' : points < 0 ? 'loss' : 'faint'}>
          {pointsText(points)}
        </span>
      );
    }),
  ]);
  if (steps.length === 0) return null;
  return (
    <Table
      title={`Points above ${clean(first.name)}`}
      header={['run', ...steps.map((step) => `step ${step}`)]}
      rows={rows}
    />
  );
}

function Settings({ runs }: { readonly runs: readonly HeardRun[] }) {
  const settings = runs.map(({ record }) => new Map(leavesOf(record?.resolved)));
  const paths = [...new Set(settings.flatMap((leaves) => [...leaves.keys()]))];
  const differing = paths.filter((path) => new Set(settings.map((leaves) => leaves.get(path))).size > 1);
  if (differing.length === 0) return <p class="quiet">Their settings differ nowhere.</p>;
  return (
    <Table
      title="Different settings"
      header={['setting', ...runs.map(({ name }) => clean(name))]}
      rows={differing.map((path) => [path, ...settings.map((leaves) => clean(leaves.get(path) ?? ''))])}
    />
  );
}

/** The dotted paths and values of all leaves of a plain object. */
function leavesOf(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, JSON.stringify(value) ?? '']];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, path === '' ? key : `${path}.${key}`));
}
