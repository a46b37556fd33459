import { percent, significant } from '@drmas/engine/host';
import { useMemo, useState } from 'preact/hooks';
import {
  bandOf,
  type EventsByKind,
  type ListedAblation,
  mainMeasures,
  type PairedDifference,
  pairedDifferences,
  paretoPicture,
  type RunSummary,
  summariseRun,
  summariseVariants,
} from '../../../../src/runs/analysis.js';
import { Chart, Swatch } from '../chart/chart.js';
import type { ChartPoint, Line } from '../chart/chart-data.js';
import type { ChartStyle } from '../chart/chart-options.js';
import { measurePoints } from '../chart/points.js';
import { colourClass } from '../chart/theme.js';
import { Table } from '../parts/table.js';
import { clean, pointsText } from '../parts/texts.js';
import { addressOf, runAddress } from '../routes.js';
import { type HeardRun, useHeard } from '../run-store.js';
import { ParetoView } from './pareto-view.js';

const NOBODY: readonly string[] = [];

/** An ablation: each variant's runs as a mean with a band, and the differences over pairs. */
export function AblationPage({ name }: { readonly name: string }) {
  const { list, problem } = useHeard(NOBODY);
  const ablation = list?.ablations.find((one) => one.name === name);
  if (problem !== undefined) return <p class="notice bad">{clean(problem)}</p>;
  if (list === undefined) return <p class="empty">reading {clean(name)} …</p>;
  if (ablation === undefined)
    return <p class="empty">There is no such ablation here, or its ablation.json is damaged.</p>;
  if (ablation.runs.length === 0) return <p class="empty">Its first run has not begun.</p>;
  return <Variants ablation={ablation} />;
}

function Variants({ ablation }: { readonly ablation: ListedAblation }) {
  const names = useMemo(() => ablation.runs.map(({ name }) => name), [ablation]);
  const { runs: heard } = useHeard(names);
  const [agent, setAgent] = useState('');
  const variants = useMemo(
    () =>
      ablation.variants.map((variant) => ({
        variant,
        runs: comparable(
          ablation.runs.filter((run) => run.variant === variant).flatMap(({ name }) => heard.get(name) ?? []),
        ),
      })),
    [ablation, heard],
  );
  const agents = [...new Set([...heard.values()].flatMap(({ log }) => log.agents))].sort();
  const about = agents.includes(agent) ? agent : (agents.at(-1) ?? '');
  return (
    <>
      <div class="controls">
        <h1>{clean(ablation.name)}</h1>
        <span class="faint">
          {ablation.variants.length} variants, {new Set(ablation.runs.map(({ seed }) => seed)).size} pairs; compared
          with {clean(ablation.baseline)}
        </span>
        <a href={addressOf({ page: 'compare', names })}>all runs over one another</a>
      </div>
      <Results ablation={ablation} heard={heard} />
      <p class="faint">
        Lines are means over a variant's completed runs, bands reach from the lowest of them to the highest.
      </p>
      <div class="grid">
        <Bands title="held-out score (avg@k)" unit="share" include={[0, 1]} variants={variants} of={scores} />
        <Bands title="training reward" unit="number" variants={variants} of={rewards} />
      </div>
      <h2 class="choice">
        Agent{' '}
        <select aria-label="agent" value={about} onChange={(event) => setAgent(event.currentTarget.value)}>
          {agents.map((one) => (
            <option key={one} value={one}>
              {clean(one)}
            </option>
          ))}
        </select>
      </h2>
      <div class="grid">
        {mainMeasures.map((measure) => (
          <Bands
            {...measure}
            key={measure.key}
            variants={variants}
            of={({ steps }) => measurePoints(measure, about, steps)}
          />
        ))}
      </div>
    </>
  );
}

/** The runs that count in the mean: the completed ones, or all until one is completed. */
function comparable(runs: readonly HeardRun[]): readonly HeardRun[] {
  const completed = runs.filter(({ log }) => log.finished?.reason === 'completed');
  return completed.length === 0 ? runs : completed;
}

const scores = (log: EventsByKind): ChartPoint[] =>
  log.scores.map(({ step, averageAtK }) => ({ x: step, y: averageAtK }));
const rewards = ({ steps }: EventsByKind): ChartPoint[] =>
  steps.flatMap(({ step, reward }) => (reward === undefined ? [] : [{ x: step, y: reward.mean }]));

interface BandsProps extends ChartStyle {
  readonly title: string;
  readonly hint?: string;
  readonly variants: readonly { readonly variant: string; readonly runs: readonly HeardRun[] }[];
  readonly of: (log: EventsByKind) => readonly ChartPoint[];
}

function Bands({ variants, of, title, hint, unit, include, logarithmic, reference }: BandsProps) {
  const lines = variants.map(
    ({ variant, runs }, colour): Line => ({
      name: variant,
      colour,
      dots: true,
      points: bandOf(runs.map(({ log }) => of(log))),
    }),
  );
  if (lines.every(({ points }) => points.length === 0)) return null;
  return <Chart {...{ title, hint, unit, include, logarithmic, reference }} lines={lines} bands sync="step" />;
}

interface ResultsProps {
  readonly ablation: ListedAblation;
  readonly heard: ReadonlyMap<string, HeardRun>;
}

function Results({ ablation, heard }: ResultsProps) {
  const { variants, baseline } = ablation;
  const runs = ablation.runs.flatMap((member): RunSummary[] => {
    const log = heard.get(member.name)?.log;
    if (log === undefined) return [];
    const ended = log.finished?.reason === 'completed';
    return [
      summariseRun(member, [...log.steps, ...log.evaluations, ...log.spikes], ended ? undefined : 'not completed'),
    ];
  });
  const summaries = summariseVariants(runs, variants);
  const picture = ablation.parts && paretoPicture(summaries, ablation.parts);
  const differences = new Map(pairedDifferences(runs, variants, baseline).map((one) => [one.variant, one]));
  const rows = summaries.map((summary, i) => {
    const { variant, start, score, scoreSpread, spikes } = summary;
    const ofVariant = runs.filter((run) => run.variant === variant);
    return [
      <span key="name" class={colourClass(i)}>
        <Swatch colour={i} /> {clean(variant)}
      </span>,
      `${summary.runs} of ${ofVariant.length}`,
      start === undefined ? '' : percent(start),
      score === undefined
        ? ''
        : `${percent(score)}${Number.isFinite(scoreSpread) ? ` ± ${(100 * scoreSpread).toFixed(1)}` : ''}`,
      <Difference key="difference" difference={differences.get(variant)} />,
      summary.runs === 0 ? '' : significant(spikes),
      <span key="runs" class="wide">
        {ofVariant.map(({ name, seed, score: own, status }) => (
          <a key={name} href={runAddress(name)} title={status === 'completed' ? '' : 'not completed'}>
            seed {seed}: {status !== 'completed' ? '…' : own === undefined ? 'no score' : percent(own)}
          </a>
        ))}
      </span>,
    ];
  });
  const header = [
    'variant',
    'completed',
    'score at first',
    'score at last',
    `above ${clean(baseline)}`,
    'spikes a run',
    'runs',
  ];
  return (
    <>
      <Table header={header} rows={rows} />
      {picture && <ParetoView picture={picture} variants={variants} />}
    </>
  );
}

function Difference({ difference }: { readonly difference: PairedDifference | undefined }) {
  if (difference === undefined || difference.pairs === 0) return null;
  const { mean, interval, p, pairs, better, verdict } = difference;
  const counts = `${better} of ${pairs} pairs better${p === undefined ? '' : `, exact p ${significant(p)}`}`;
  if (interval === undefined) return <span title={counts}>{pointsText(mean)} (one pair)</span>;
  const tone = verdict === 'higher' ? 'gain' : verdict === 'lower' ? 'loss' : '';
  return (
    <span class={tone} title={counts}>
      {pointsText(mean)} [{pointsText(interval.low)}, {pointsText(interval.high)}], {pairs} pairs
    </span>
  );
}
