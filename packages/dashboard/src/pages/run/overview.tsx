import { duration, significant } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { HOW_TO_SUCCEED } from '@drmas/engine/nouns';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import {
  type Crossing,
  firstCrossings,
  howToMove,
  incidentsOf,
  mainMeasures,
  patientZero,
  type ReadableRun,
  unmovedAgents,
} from '../../../../../src/runs/analysis.js';
import { clean, intervalText, overlap, pointsText, scoreText } from '../../parts/texts.js';
import { TimeLine } from '../../parts/time-line.js';
import type { HeardRun } from '../../run-store.js';
import { Steps } from '../runs-page.js';
import {
  AgentChart,
  GroupsChart,
  MetricsChart,
  PartsCharts,
  RewardChart,
  ScoreChart,
  TrainingMetricsChart,
  WarmStartChart,
} from './team-charts.js';

interface OverviewProps {
  readonly run: HeardRun;
  readonly listed: ReadableRun;
}

/** The state of a run at a glance: score, reward, trouble, and the main measurements of each agent. */
export function Overview({ run, listed }: OverviewProps) {
  const { log } = run;
  const crossings = useMemo(() => firstCrossings(log.steps), [log.steps]);
  const incidents = useMemo(() => incidentsOf(log, crossings), [log, crossings]);
  const isPreparing = listed.state === 'running' && log.started === undefined;
  return (
    <>
      {isPreparing && (
        <p class="empty" role="status">
          drmas is preparing the run{log.preparing === undefined ? ' …' : `: ${clean(log.preparing.message)}`}
        </p>
      )}
      <Tiles run={run} listed={listed} crossings={crossings} />
      <TimeLine run={run} incidents={incidents} zero={patientZero(crossings)} />
      <div class="grid">
        <ScoreChart run={run} />
        <MetricsChart run={run} />
        <RewardChart run={run} />
        <TrainingMetricsChart run={run} />
        <GroupsChart run={run} />
        <WarmStartChart run={run} />
      </div>
      <h2>Agents</h2>
      <div class="grid">
        {mainMeasures.map((measure) => (
          <AgentChart key={measure.key} measure={measure} run={run} />
        ))}
        <PartsCharts run={run} />
      </div>
    </>
  );
}

function Tiles({ run, listed, crossings }: OverviewProps & { readonly crossings: readonly Crossing[] }) {
  const { first, last, headline } = listed;
  const { steps, best, stop } = run.log;
  const rewards = steps.flatMap(({ reward }) => reward?.mean ?? []);
  const recent = rewards.slice(-10);
  const zero = patientZero(crossings);
  const unmoved = zero === undefined ? unmovedAgents(steps, listed) : [];
  const { episodes = 0, unscored } = run.log.evaluations.at(-1) ?? {};
  const left = secondsLeft(run, listed);
  return (
    <div class="tiles">
      <Tile title={headline === 'reward' ? 'held-out reward' : 'held-out score (avg@k)'}>
        {last === null ? (
          <span class="faint">no evaluation yet</span>
        ) : headline === 'reward' ? (
          <>
            <b>{scoreText(last, headline)}</b>{' '}
            {first !== null && first.step !== last.step && (
              <span class="faint">first {scoreText(first, headline)}</span>
            )}{' '}
            <span class="faint">{HOW_TO_SUCCEED}</span>
          </>
        ) : (
          <>
            <b>{scoreText(last)}</b> {intervalText(last)}
            {first !== null && first.step !== last.step && (
              <span class={overlap(first, last) ? 'faint' : last.averageAtK >= first.averageAtK ? 'gain' : 'loss'}>
                {' '}
                {pointsText(last.averageAtK - first.averageAtK)} points
                {overlap(first, last) && ': the intervals overlap'}
              </span>
            )}
          </>
        )}
        {best !== undefined && (
          <span class="faint">
            {' '}
            best at step {best.step} ({best.by} {significant(best.score)})
          </span>
        )}
        {unscored !== undefined && (
          <span class="faint">
            {' '}
            {episodes - unscored} of {episodes} episodes scored
          </span>
        )}
      </Tile>
      <Tile title={`reward of the last ${recent.length === 1 ? 'step' : `${recent.length} steps`}`}>
        {recent.length === 0 ? (
          <span class="faint">no step yet</span>
        ) : (
          <>
            <b>{significant(mean(recent))}</b>{' '}
            <span class="faint">first {significant(mean(rewards.slice(0, 10)))}</span>
          </>
        )}
      </Tile>
      <Tile title="steps">
        <b>
          <Steps run={listed} />
        </b>
        {left !== undefined && <span class="faint">about {duration(left)} left</span>}
        {stop !== undefined && stop.step >= listed.steps && (
          <span class="faint">ended early: {clean(stop.message)}</span>
        )}
      </Tile>
      <Tile title="where trouble began">
        {unmoved.length > 0 ? (
          <>
            {clean(unmoved.join('; '))} <span class="faint">{howToMove(steps, run.log.started)}</span>
          </>
        ) : zero === undefined ? (
          <span class="faint">
            {steps.length < 10 ? 'too early to say' : 'no agent is worse now than in its first steps'}
          </span>
        ) : (
          <>
            <b>{zero.agent}</b> at step {zero.step} <span class="faint">{zero.text}</span>
          </>
        )}
      </Tile>
    </div>
  );
}

/** The remaining time of a run, from its latest steps; undefined if it cannot be estimated. */
function secondsLeft({ log }: HeardRun, { state, plannedSteps, steps }: ReadableRun): number | undefined {
  if (state !== 'running' || plannedSteps === null || log.steps.length === 0) return undefined;
  return (plannedSteps - steps) * mean(log.steps.slice(-10).map(({ seconds }) => seconds));
}

function Tile({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="tile">
      <h3>{title}</h3>
      <p>{children}</p>
    </section>
  );
}
