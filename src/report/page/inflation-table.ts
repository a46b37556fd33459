import { explainInflation } from '../../advantage/analysis/diagnosis.js';
import { percent, significant } from '../../core/format.js';
import { mean } from '../../core/statistics.js';
import { eventsOf, type RunData } from '../run-data.js';
import { agentNames } from './curves.js';
import { type Html, html, htmlTable } from './html.js';

/** The table of when each agent is called and what that does to its gradient, as means over the steps of its run. */
export function inflationTable(runs: readonly RunData[]): Html {
  const rows = runs.flatMap((run) =>
    agentNames(run).flatMap((name) => {
      const steps = eventsOf(run.events, 'step').flatMap(({ agents }) => {
        const { calls, inflation } = agents[name] ?? {};
        return calls === undefined || inflation === undefined ? [] : [{ ...calls, ...inflation }];
      });
      if (steps.length === 0) return [];
      const covariances = steps.flatMap(({ covariance }) => covariance ?? []);
      const calls = {
        share: mean(steps.map(({ share }) => share)),
        success: mean(steps.map(({ success }) => success)),
        overall: mean(steps.map(({ overall }) => overall)),
      };
      const inflation = mean(steps.map(({ predicted }) => predicted));
      return [
        [
          runs.length > 1 ? `${run.name}: ${name}` : name,
          percent(calls.share),
          significant(calls.success),
          significant(calls.overall),
          significant(inflation),
          covariances.length === 0 ? '' : significant(mean(covariances)),
          explainInflation(name, { inflation, calls }),
        ],
      ];
    }),
  );
  if (rows.length === 0) return html``;
  const header = [
    'agent',
    'called in',
    'reward there',
    'reward of all',
    'inflation',
    'measured - predicted',
    'in words',
  ];
  return html`<h2>Who is called when</h2>${htmlTable(header, rows)}`;
}
