import type { Signal } from '../run/signal.js';
import { scoreTurns } from '../samples/training-samples.js';

/** The critic's value of each response token. */
export const criticValues: Signal = {
  name: 'values',
  field: 'values',
  async score(turns) {
    const scored = await Promise.all(
      turns.map(async ({ learner: { critic }, chains }) =>
        critic === undefined ? [] : [...(await scoreTurns(chains, (samples) => critic.handle.values(samples)))],
      ),
    );
    return new Map(scored.flat().map(([turn, values]) => [turn, { values }]));
  },
  backend: { what: 'critic', has: ({ roles }) => roles.critic.length > 0 },
};
