import { agentMeasures } from '../../../../src/runs/analysis.js';
import { clean } from '../../parts/texts.js';
import type { HeardRun } from '../../run-store.js';
import { AgentChart } from './agent-chart.js';

/** Everything that is measured of each agent. */
export function AgentsTab({ run }: { readonly run: HeardRun }) {
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
