/** The charts of a report. */
import { shareOfForeign } from '../../core/episode.js';
import type { AgentStep, Step } from '../../core/events.js';
import { percent } from '../../core/format.js';
import { eventsOf, type RunData } from '../run-data.js';
import { type ChartOptions, lineChart, type Series, stackedChart, valuesOf } from './chart.js';
import { type Html, html } from './html.js';
import type { Point } from './scale.js';

/** The charts: score and reward of all runs, then each run agent by agent. */
export function curves(runs: readonly RunData[]): Html {
  const recorded = metrics.map((metric) => ({ ...metric, series: runs.map((run) => agentSeries(metric, run)) }));
  const valuesIn = ({ series }: RecordedMetric) => series.flat().flatMap(valuesOf);
  const zero = recorded
    .filter((metric) => valuesIn(metric).length > 0 && valuesIn(metric).every((value) => value === 0))
    .map(({ title }) => title);
  const drawn = recorded
    .filter((metric) => valuesIn(metric).some((value) => value !== 0))
    .map((metric) => ({ title: metric.title, charts: agentCharts(metric, runs) }));
  return html`<h2 id="curves">Curves</h2>
<div class="grid">${scores(runs)}${metricCurves(runs)}${rewards(runs)}${runs.map((run) => warmStart(run, runs.length))}${runs.map((run) => groupKinds(run, runs.length))}</div>
<h2 id="agents">Agents</h2>
<p class="faint">Circles mark spikes: updates whose gradient norm was far above its running median. Inflation is how much larger
than with its own statistics an agent's second moment is under shared ones (predicted, Lemma 4.2 of the Dr. MAS paper).</p>
${runs.length === 1 ? html`<div class="grid">${drawn.flatMap(({ charts }) => charts)}</div>` : drawn.map(({ title, charts }) => html`<h3>${title}</h3><div class="grid">${charts}</div>`)}
${zero.length === 0 ? undefined : html`<p class="faint">Zero at every step: ${zero.join(', ')}.</p>`}`;
}

const stepsOf = (run: RunData): Step[] => eventsOf(run.events, 'step');

/** The title of a chart, with the run's name where there are several. */
const titled = (title: string, run: RunData, runs: number) => (runs > 1 ? `${run.name}: ${title}` : title);

/** The chart of held-out scores: for several runs avg@k alone, for a single one also pass@k and maj@k. */
function scores(runs: readonly RunData[]): Html {
  const series = runs.flatMap((run): Series[] => {
    const evaluations = eventsOf(run.events, 'evaluation').filter(({ split }) => split === 'test');
    const curve = (name: string, of: (event: (typeof evaluations)[number]) => number): Series => ({
      name,
      points: finitePoints(evaluations.map((event) => ({ x: event.step, y: of(event) }))),
    });
    const intervals = evaluations.map(({ step, interval: { low, high } }) => ({ x: step, low, high }));
    const average = { ...curve(runs.length > 1 ? run.name : 'avg@k', ({ averageAtK }) => averageAtK), intervals };
    if (runs.length > 1) return [average];
    return [average, curve('pass@k', ({ passAtK }) => passAtK), curve('maj@k', ({ majorityAtK }) => majorityAtK)];
  });
  return lineChart({
    title: 'held-out score (avg@k with its interval)',
    series,
    format: (value) => percent(value, 0),
    include: [0, 1],
  });
}

/** The chart of what the team measures on held-out tasks besides its reward. */
function metricCurves(runs: readonly RunData[]): Html {
  const series = runs.flatMap((run) => {
    const evaluations = eventsOf(run.events, 'evaluation').filter(({ split }) => split === 'test');
    const names = [...new Set(evaluations.flatMap(({ metrics = {} }) => Object.keys(metrics)))].sort();
    return names.map(
      (name): Series => ({
        name: titled(name, run, runs.length),
        points: finitePoints(evaluations.map(({ step, metrics }) => ({ x: step, y: metrics?.[name] }))),
      }),
    );
  });
  return series.length === 0 ? html`` : lineChart({ title: 'held-out metrics', series });
}

function rewards(runs: readonly RunData[]): Html {
  const series = runs.map(
    (run): Series => ({
      name: run.name,
      points: finitePoints(stepsOf(run).map(({ step, reward }) => ({ x: step, y: reward?.mean }))),
    }),
  );
  return lineChart({ title: 'training reward', series });
}

function warmStart(run: RunData, runs: number): Html {
  const warmups = eventsOf(run.events, 'warmup');
  if (warmups.length === 0) return html``;
  const policies = [...new Set(warmups.map(({ policy }) => policy))];
  const curve = (
    policy: string,
    name: string,
    of: (event: (typeof warmups)[number]) => number | undefined,
  ): Series => ({
    name,
    points: finitePoints(
      warmups.filter((event) => event.policy === policy).map((event) => ({ x: event.step, y: of(event) })),
    ),
  });
  const series = policies.flatMap((policy) => [
    curve(policy, `${policy}, training`, ({ loss }) => loss),
    curve(policy, `${policy}, held out`, ({ heldOutLoss }) => heldOutLoss),
  ]);
  return lineChart({ title: titled('warm-start loss', run, runs), series, include: [0] });
}

function groupKinds(run: RunData, runs: number): Html {
  const steps = stepsOf(run).filter(({ groups }) => groups !== undefined);
  const kind = (name: string, colour: number, of: (groups: Step['groups']) => number): Series => ({
    name,
    colour,
    points: steps.map(({ step, groups }) => ({
      x: step,
      y: of(groups) / Math.max(1, groups.allRight + groups.mixed + groups.allWrong),
    })),
  });
  return stackedChart({
    title: titled('groups by outcome', run, runs),
    series: [
      kind('all right', 2, ({ allRight }) => allRight),
      kind('mixed', 0, ({ mixed }) => mixed),
      kind('all wrong', 6, ({ allWrong }) => allWrong),
    ],
  });
}

interface Metric {
  readonly title: string;
  readonly of: (agent: AgentStep) => number | undefined;
  readonly chart?: Pick<ChartOptions, 'format' | 'include' | 'logarithmic' | 'reference'>;
  /** True for the chart on which spikes are marked. */
  readonly spikes?: boolean;
  /** True for a chart that leaves out agents that do not train. */
  readonly learning?: boolean;
}

const fromZero = { include: [0] };
const norms = { logarithmic: true, include: [0] };
const shares = { format: percent, include: [0] };
const aroundOne = { reference: 1, include: [0] };

const metrics: readonly Metric[] = [
  {
    title: 'gradient norm before clipping',
    learning: true,
    of: (agent) => agent.gradientNorm,
    chart: norms,
    spikes: true,
  },
  { title: 'predicted inflation', learning: true, of: (agent) => agent.inflation?.predicted, chart: aroundOne },
  { title: 'measured inflation', learning: true, of: (agent) => agent.inflation?.measured, chart: aroundOne },
  { title: 'episodes in which the agent is called', of: (agent) => agent.calls?.share, chart: shares },
  { title: 'reward of those episodes', of: (agent) => agent.calls?.success, chart: fromZero },
  { title: 'reward', of: (agent) => agent.rewardMean },
  { title: 'largest |advantage|', learning: true, of: (agent) => agent.maxAbsAdvantage, chart: norms },
  { title: 'invalid outputs', of: (agent) => agent.invalid, chart: shares },
  { title: 'invalid outputs that were rewarded', of: (agent) => agent.health?.rewardedInvalid, chart: shares },
  {
    title: "assistants' messages in prompts that no turn wrote",
    of: ({ history }) => (history === undefined ? undefined : shareOfForeign([history])),
    chart: shares,
  },
  { title: 'spread of rewards within a group', of: (agent) => agent.health?.groupSpread, chart: fromZero },
  { title: "turns that repeat a sibling's", of: (agent) => agent.health?.duplicates, chart: shares },
  { title: 'groups that differ by penalties alone', of: (agent) => agent.health?.groups.penaltyOnly, chart: fromZero },
  { title: 'turns a step', of: (agent) => agent.turns, chart: fromZero },
  { title: 'response tokens a turn', of: (agent) => agent.responseTokens, chart: fromZero },
  { title: 'entropy', learning: true, of: (agent) => agent.entropy, chart: fromZero },
  { title: 'KL from the sampling policy', learning: true, of: (agent) => agent.kl, chart: fromZero },
  { title: 'clip fraction', learning: true, of: (agent) => agent.clipFraction, chart: shares },
];

interface RecordedMetric extends Metric {
  /** The series of each run's agents. */
  readonly series: readonly (readonly Series[])[];
}

/** The charts of one measurement, one a run, all on the same scales. */
function agentCharts({ title, chart, series }: RecordedMetric, runs: readonly RunData[]): Html[] {
  const lines = series.flat();
  const shared = { x: lines.flatMap(({ points }) => points.map(({ x }) => x)), y: lines.flatMap(valuesOf) };
  return runs.map((run, i) =>
    lineChart({ ...chart, title: titled(title, run, runs.length), series: series[i] ?? [], shared }),
  );
}

function agentSeries(metric: Metric, run: RunData): Series[] {
  const steps = stepsOf(run);
  const spikes = metric.spikes === true ? eventsOf(run.events, 'spike', 'skipped') : [];
  return agentNames(run).map((name) => ({
    name,
    points: finitePoints(
      steps.flatMap(({ step, agents }) => {
        const agent = agents[name];
        const silent = agent === undefined || (metric.learning === true && agent.frozen === true);
        return silent ? [] : [{ x: step, y: metric.of(agent) }];
      }),
    ),
    marks: spikes.flatMap(({ agent, policy, gradientNorm, median, action, step }) =>
      (agent ?? policy) === name && gradientNorm !== null
        ? [{ x: step, y: gradientNorm, text: `spike at step ${step}: ${gradientNorm} against ${median}, ${action}` }]
        : [],
    ),
  }));
}

/** The names of a run's agents, sorted, so that an agent has the same colour in every chart of its run. */
export const agentNames = (run: RunData): string[] =>
  [...new Set(stepsOf(run).flatMap(({ agents }) => Object.keys(agents)))].sort();

/** The points with finite values; logs of other versions may lack a field. */
const finitePoints = (points: readonly { x: number; y: number | null | undefined }[]): Point[] =>
  points.flatMap(({ x, y }) => (typeof y === 'number' && Number.isFinite(y) ? [{ x, y }] : []));
