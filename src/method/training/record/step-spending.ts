/** The cost of a step, by agent: the tokens that it read, wrote and trained on, and their price. */

import { playedTokens, priced, type Spending } from '../../../base/host.js';
import type { Episode, Turn } from '../../../base/nouns.js';
import type { Played } from '../play/played.js';
import type { Learner } from '../run/learner.js';
import type { Learnt } from '../update/learnt.js';

/** The spending of each agent that was called, including failed episodes and episodes that only a signal needs. */
export function stepSpending(
  learners: readonly Learner[],
  { all, extra }: Pick<Played, 'all' | 'extra'>,
  { turns: learnt, updates }: Pick<Learnt, 'turns' | 'updates'>,
): Record<string, Spending> {
  const played: readonly Episode[] = [...all.flatMap(({ episodes }) => episodes), ...extra.episodes];
  const agents = [...new Set(played.flatMap((episode) => episode.turns.map(({ agent }) => agent)))].sort();
  return Object.fromEntries(
    agents.map((agent) => {
      const turns = played.flatMap((episode) => episode.turns.filter((turn) => turn.agent === agent));
      const learner = learners.find((each) => agent in each.agents);
      const learns = learner !== undefined && agent in (updates[learner.name]?.agents ?? {});
      const chains = learns ? learnt.flatMap((of) => (of.learner === learner ? of.chains : [])) : [];
      const tokens = chains.reduce(
        (sum, chain) => (chain[0]?.agent === agent ? sum + length(chain.at(-1) as Turn) : sum),
        0,
      );
      const trained = (learner?.settings.epochs ?? 0) * tokens;
      return [agent, priced({ ...playedTokens(turns), trained }, learner?.settings.price)];
    }),
  );
}

/** A chain is one sequence: the prompt and the response of its last turn. */
const length = ({ prompt, response }: Turn) => prompt.length + response.length;
