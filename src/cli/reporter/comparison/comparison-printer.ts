/** The lines at the end of a comparison: scores, curves, and the agents under each variant. */
import { explainInflation, isNotable } from '../../../method/advantage.js';
import type { AgentStage, AgentSummary, VariantSummary } from '../../../runs/analysis.js';
import type { AblationResult } from '../../../runs/studies.js';
import { endedLine, points } from '../ablation-printer.js';
import { columnTables, percent, significant, table, wrap } from '../text-layout.js';
import { chartLines } from './line-chart.js';

export function comparisonLines(result: AblationResult, width: number): string[] {
  const { runs, variants } = result;
  const done = variants.filter((variant) => variant.runs > 0);
  const failed = runs.filter(({ status }) => status === 'failed');
  const curves = done.map(({ variant, curve }) => ({ name: variant, values: curve.rewards }));
  return [
    ...(done.some(({ curve }) => curve.rewards.length > 0)
      ? ['training reward, mean of each step', ...chartLines(curves, width), '']
      : []),
    ...agentsByInflation(done).flatMap((agent) => [...agentTables(agent, done, width), '']),
    ...(done.length > 0 ? wrap(LEGEND, width) : []),
    ...inflationLines(done, width),
    '',
    ...scoreTable(done),
    ...differenceLines(result, width),
    ...failed.flatMap((run) => wrap(endedLine(run), width)),
  ];
}

const LEGEND =
  'first tenth of the steps -> last tenth; called: share of the episodes; reward: of its turns; norm: of the gradient before clipping; infl.: predicted inflation of its second moment under shared statistics';

/** The agents. First comes the agent whose gradient shared statistics would inflate most. */
function agentsByInflation(variants: readonly VariantSummary[]): string[] {
  const largest = (agent: string) => Math.max(...variants.map(({ agents }) => agents[agent]?.first.inflation ?? 0));
  return [...new Set(variants.flatMap(({ agents }) => Object.keys(agents)))].sort((a, b) => largest(b) - largest(a));
}

/** A table of one agent with a column for each variant; several tables if the columns do not fit on a line. */
function agentTables(agent: string, variants: readonly VariantSummary[], width: number): string[] {
  const columns = variants.flatMap(({ variant, agents }) => {
    const summary = agents[agent];
    return summary === undefined ? [] : [[variant, ...agentColumn(summary)]];
  });
  return columnTables([agent, ...agentRows.map(([label]) => label)], columns, width);
}

const change = (key: keyof AgentStage, show: (value: number) => string) => (agent: AgentSummary) =>
  `${show(agent.first[key])} -> ${show(agent.last[key])}`;
const decimals = (value: number) => value.toFixed(2);

/** A norm. The norm of an agent with nothing to learn is only rounding error and is shown as 0. */
const normText = (norm: number) => (norm < 1e-4 ? '0' : significant(norm));

const agentRows: readonly (readonly [label: string, cell: (agent: AgentSummary) => string])[] = [
  ['called', change('share', decimals)],
  ['reward', change('reward', decimals)],
  ['invalid %', change('invalid', (share) => (100 * share).toFixed(1))],
  ['entropy', change('entropy', decimals)],
  ['norm', change('norm', normText)],
  ['largest norm', ({ maxNorm }) => normText(maxNorm)],
  ['infl.', change('inflation', decimals)],
];

const agentColumn = (agent: AgentSummary) => agentRows.map(([, cell]) => cell(agent));

/** A sentence for each agent whose own statistics differ from the shared ones at the start of the first variant. */
function inflationLines([variant]: readonly VariantSummary[], width: number): string[] {
  return Object.entries(variant?.agents ?? {}).flatMap(([agent, { first }]) =>
    isNotable(first) ? wrap(explainInflation(agent, { ...first, calls: first }), width) : [],
  );
}

function scoreTable(variants: readonly VariantSummary[]): string[] {
  const rows = variants.map(({ variant, start, score, reward, runs }) => [
    variant,
    percent(start),
    percent(score),
    reward.toFixed(3),
    String(runs),
  ]);
  return table([['held-out tasks', 'start', 'end', 'reward', 'runs'], ...rows]);
}

/** The distance between the last scores of each variant and its baseline. */
function differenceLines({ differences }: AblationResult, width: number): string[] {
  return differences
    .filter(({ pairs }) => pairs > 0)
    .flatMap(({ variant, baseline, mean, pairs, interval }) => {
      const ends = `${variant} ends ${Math.abs(100 * mean).toFixed(1)} points ${mean < 0 ? 'below' : 'above'} ${baseline}`;
      const over =
        interval === undefined
          ? ': one pair, which cannot show how much seeds differ'
          : ` over ${pairs} pairs, [${points(interval.low)}, ${points(interval.high)}]`;
      return wrap(ends + over, width);
    });
}
