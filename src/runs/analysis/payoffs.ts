/** How the trained agents of a run scored against each earlier version of a policy. */
import type { Step } from '@drmas/engine/events';
import { type PairedInterval, pairedInterval } from './paired-interval.js';

/** The meetings with a version: their number, and the mean score over tasks with Student's interval. */
export interface Payoff extends PairedInterval {
  readonly pool: string;
  /** The step after which the policy had these weights. */
  readonly version: number;
  readonly episodes: number;
  readonly tasks: number;
}

/** The payoff table of a run: pools in the order of letters, the versions that were met in their order. */
export function payoffTable(steps: readonly Pick<Step, 'pools'>[]): Payoff[] {
  const names = [...new Set(steps.flatMap(({ pools }) => Object.keys(pools ?? {})))].sort();
  return names.flatMap((pool) => {
    const met = steps.flatMap(({ pools }) => pools?.[pool] ?? []);
    const versions = [...new Set(met.map(({ version }) => version))].sort((a, b) => a - b);
    return versions.map((version) => {
      const rows = met.filter((row) => row.version === version);
      const scores = rows.flatMap((row) => row.scores);
      const episodes = rows.reduce((sum, row) => sum + row.episodes, 0);
      return { pool, version, episodes, tasks: scores.length, ...pairedInterval(scores) };
    });
  });
}
