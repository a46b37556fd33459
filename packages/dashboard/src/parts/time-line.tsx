import { useMemo, useState } from 'preact/hooks';
import type { Crossing, Incident } from '../../../../src/runs/analysis.js';
import { colourClass } from '../chart/theme.js';
import { runAddress } from '../routes.js';
import type { HeardRun } from '../run-store.js';
import { clean } from './texts.js';

/** Signs differ in shape, so that they need no colour. */
const SIGNS: Readonly<Record<Incident['kind'], readonly [string, string]>> = {
  spike: ['○', 'spike'],
  skipped: ['⊘', 'skipped update'],
  symptom: ['▲', 'symptom'],
  warning: ['△', 'warning'],
  failed: ['✕', 'failed episodes'],
  crossing: ['◆', 'left its starting range'],
  stop: ['■', 'ended early'],
};

interface TimeLineProps {
  readonly run: HeardRun;
  readonly incidents: readonly Incident[];
  readonly zero: Crossing | undefined;
}

/** The incidents of the run: a lane an agent and one for the team, a sign an incident, and the chosen one as text. */
export function TimeLine({ run, incidents, zero }: TimeLineProps) {
  const { steps, agents } = run.log;
  const [chosen, setChosen] = useState<Incident>();
  const last = Math.max(1, steps.at(-1)?.step ?? 1);
  const lanes: readonly (string | undefined)[] = useMemo(
    () => [...agents, ...(incidents.some(({ agent }) => agent === undefined) ? [undefined] : [])],
    [agents, incidents],
  );
  const kinds = [...new Set(incidents.map(({ kind }) => kind))];
  if (steps.length === 0) return null;
  if (incidents.length === 0)
    return <p class="quiet">No spike, no symptom, no warning, no failed episode in {steps.length} steps.</p>;
  return (
    <section class="timeline" aria-label="incidents of the run">
      <header>
        <h2>Incidents</h2>
        <span class="legend">
          {kinds.map((kind) => (
            <span key={kind}>
              <i class={`sign ${kind}`}>{SIGNS[kind][0]}</i> {SIGNS[kind][1]}
            </span>
          ))}
        </span>
      </header>
      {lanes.map((lane) => (
        <div key={lane ?? ''} class="lane">
          <span class={lane === undefined ? 'who' : `who ${colourClass(agents.indexOf(lane))}`}>
            {clean(lane ?? 'team')}
            {lane !== undefined && zero?.agent === lane && <em title="trouble began here">patient 0</em>}
          </span>
          <span class="track">
            {incidents
              .filter(({ agent }) => agent === lane)
              .map((incident) => (
                <button
                  key={`${incident.step} ${incident.kind} ${incident.text}`}
                  type="button"
                  class={`sign ${incident.kind}`}
                  style={{ left: `${(100 * incident.step) / last}%` }}
                  aria-label={`step ${incident.step}: ${clean(incident.text)}`}
                  title={`step ${incident.step}: ${clean(incident.text)}`}
                  onClick={() => setChosen(incident)}
                  onFocus={() => setChosen(incident)}
                >
                  {SIGNS[incident.kind][0]}
                </button>
              ))}
          </span>
        </div>
      ))}
      <div class="lane scale" aria-hidden="true">
        <span class="who" />
        <span class="track">
          <span>0</span>
          <span>step {Math.round(last / 2)}</span>
          <span>{last}</span>
        </span>
      </div>
      <p class="said" aria-live="polite">
        {chosen === undefined ? (
          <span class="faint">
            {zero === undefined
              ? 'Choose a sign to read about the incident.'
              : `Trouble began in ${zero.agent}: at step ${zero.step}, ${zero.text}.`}
          </span>
        ) : (
          <>
            <b>
              step {chosen.step}
              {chosen.agent === undefined ? '' : `, ${clean(chosen.agent)}`}
            </b>
            : {clean(chosen.text)}
            {chosen.count > 1 && ` (${chosen.count} of them)`}{' '}
            <a href={runAddress(run.name, 'episodes', { step: String(chosen.step) })}>episodes of this step</a>
          </>
        )}
      </p>
    </section>
  );
}
