import { duration, grouped } from '@drmas/engine/host';
import { useMemo } from 'preact/hooks';
import { agentMeasures, type ReadableRun, type ShownRecord } from '../../../../src/runs/analysis.js';
import { StateBadge } from '../parts/state-badge.js';
import { agoText, clean, timeBetween } from '../parts/texts.js';
import { type Route, runAddress, tabs } from '../routes.js';
import { type HeardRun, useHeard, useSource } from '../run-store.js';
import { EpisodesTab } from './episodes/episodes-tab.js';
import { Overview } from './run/overview.js';
import { TablesTab } from './run/tables-tab.js';
import { AgentChart } from './run/team-charts.js';
import { TalkTab } from './talk/talk-tab.js';

interface RunPageProps {
  readonly route: Extract<Route, { page: 'run' }>;
}

/** A run: its settings and state, and its data in tabs. */
export function RunPage({ route }: RunPageProps) {
  const names = useMemo(() => [route.name], [route.name]);
  const heard = useHeard(names);
  const { talk } = useSource();
  const run = heard.runs.get(route.name);
  if (heard.problem !== undefined) return <p class="notice bad">{clean(heard.problem)}</p>;
  if (run?.listed === undefined) return <p class="empty">reading {clean(route.name)} …</p>;
  if (run.listed.state === 'unreadable')
    return (
      <>
        <h1>{clean(route.name)}</h1>
        <p class="notice bad">{clean(run.listed.problem)}</p>
      </>
    );
  return (
    <>
      <Head run={run.listed} record={run.record} log={run.log} />
      <nav class="tabs" aria-label="parts of the run">
        {(talk === undefined ? tabs.filter((tab) => tab !== 'talk') : tabs).map((tab) => (
          <a key={tab} href={runAddress(route.name, tab)} aria-current={tab === route.tab ? 'page' : undefined}>
            {tab}
          </a>
        ))}
      </nav>
      <TabContent route={route} run={run} listed={run.listed} />
    </>
  );
}

interface TabContentProps {
  readonly route: RunPageProps['route'];
  readonly run: HeardRun;
  readonly listed: ReadableRun;
}

function TabContent({ route, run, listed }: TabContentProps) {
  switch (route.tab) {
    case 'overview':
      return <Overview run={run} listed={listed} />;
    case 'agents':
      return <AgentsTab run={run} />;
    case 'episodes':
      return <EpisodesTab run={run} query={route.query} />;
    case 'talk':
      return <TalkTab key={JSON.stringify(route.query)} run={run} query={route.query} />;
    case 'tables':
      return <TablesTab run={run} />;
    case 'recipe':
      return <RecipeTab record={run.record} />;
  }
}

interface HeadProps {
  readonly run: ReadableRun;
  readonly record: ShownRecord | null;
  readonly log: HeardRun['log'];
}

function Head({ run, record, log }: HeadProps) {
  const overrides = (record?.recipe.overrides ?? []).filter((override) => !/^(seed|warmStart\.seed)=/.test(override));
  const facts: (readonly [string, string])[] = [
    ['recipe', [run.recipe ?? record?.recipe.source ?? '', ...overrides].join(' ')],
    ['team', run.team ?? ''],
    ['estimator', run.estimator ?? ''],
    ['seed', run.seed === null ? '' : String(run.seed)],
    [
      'parameters',
      Object.entries(log.started?.parameters ?? {})
        .map(([name, count]) => `${name} ${grouped(count)}`)
        .join(', '),
    ],
    [
      run.state === 'running' ? 'so far' : 'took',
      log.finished === undefined ? timeBetween(run.started, run.latest) : duration(log.finished.seconds),
    ],
    ['began', agoText(run.started)],
  ];
  return (
    <div class="head">
      <h1>
        {clean(run.name)} <StateBadge state={run.state} />
      </h1>
      <dl class="facts">
        {facts
          .filter(([, value]) => value !== '')
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{clean(value)}</dd>
            </div>
          ))}
      </dl>
    </div>
  );
}

function AgentsTab({ run }: { readonly run: HeardRun }) {
  const latest = run.log.steps.at(-1);
  if (latest === undefined) return <p class="empty">No step of reinforcement yet.</p>;
  return (
    <>
      <ul class="explained">
        {run.log.agents.map((agent) => {
          const explanation = latest.agents[agent]?.inflation?.explanation;
          return explanation === undefined ? null : <li key={agent}>{clean(explanation)}</li>;
        })}
      </ul>
      <div class="grid">
        {agentMeasures.map((measure) => (
          <AgentChart key={measure.key} measure={measure} run={run} />
        ))}
      </div>
    </>
  );
}

function RecipeTab({ record }: { readonly record: ShownRecord | null }) {
  if (record === null) return <p class="empty">recipe.json cannot be read.</p>;
  const { recipe, resolved } = record;
  return (
    <>
      <p class="faint">
        From {clean(recipe.source)}
        {recipe.overrides.length === 0 ? ', nothing overridden' : ', with'}
      </p>
      {recipe.overrides.length > 0 && (
        <p>
          {recipe.overrides.map((override) => (
            <span key={override}>
              <code>{clean(override)}</code>{' '}
            </span>
          ))}
        </p>
      )}
      <pre class="json">{clean(JSON.stringify(resolved, null, 2))}</pre>
    </>
  );
}
