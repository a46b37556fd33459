/** What a step takes of each agent: the tokens that it read, wrote and learnt from, and what they cost. */
import type { Episode, Turn } from '../../core/episode.js';
import { playedTokens, priced, type Spending } from '../../core/play/token-count.js';
import { pricesOf, type Recipe } from '../../recipe/recipe.js';
import type { Updates } from '../update/update-result.js';
import { playedAgain } from './branches.js';
import type { ChainsByPolicy } from './chains-by-policy.js';
import type { StepRollout } from './rollout-step.js';

export function stepSpending(
  recipe: Pick<Recipe, 'assign' | 'policies'>,
  { all, greedy, branches }: Pick<StepRollout, 'all' | 'greedy' | 'branches'>,
  chains: ChainsByPolicy,
  updates: Updates,
): Record<string, Spending> {
  const played: readonly Episode[] = [...all.flatMap(({ episodes }) => episodes), ...greedy, ...playedAgain(branches)];
  const prices = pricesOf(recipe);
  const agents = [...new Set(played.flatMap((episode) => episode.turns.map(({ agent }) => agent)))].sort();
  return Object.fromEntries(
    agents.map((agent) => {
      const turns = played.flatMap((episode) => episode.turns.filter((turn) => turn.agent === agent));
      const policy = turns[0]?.policy ?? '';
      const learns = agent in (updates[policy]?.agents ?? {});
      const learnt = learns ? (chains.get(policy) ?? []).filter((chain) => chain[0]?.agent === agent) : [];
      const { epochs = 0 } = recipe.policies[policy] ?? {};
      const trained = epochs * learnt.reduce((sum, chain) => sum + length(chain.at(-1) as Turn), 0);
      return [agent, priced({ ...playedTokens(turns), trained }, prices[agent])];
    }),
  );
}

/** A chain is one sequence: the prompt and the response of its last turn. */
const length = ({ prompt, response }: Turn) => prompt.length + response.length;
