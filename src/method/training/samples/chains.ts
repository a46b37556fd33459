/** Chains: calls of an agent that continue exactly where an earlier call ended, as in a loop over tools. */

import type { AgentStep } from '@drmas/engine/events';
import { largest, mean } from '@drmas/engine/math';
import { type Episode, type EpisodeGroup, inCanonicalOrder, type Turn, trainedTurns } from '@drmas/engine/nouns';

/** The turns of one conversation in order. The tokens of each turn begin with all tokens of the previous turn. */
export type TurnChain = readonly Turn[];

/**
 * The chains of an episode's turns. A chain ends with the prompt and the response of its last turn. A call continues
 * the longest chain whose tokens its own prompt begins with, token for token. Without such a chain it opens a new one.
 * So each turn is in exactly one chain, and each prompt stays as the model read it. All turns of a chain have the same
 * agent, policy, version of the policy and temperature.
 *
 * A chain has one continuation: if two calls begin alike, the second opens its own chain. The order of the calls does
 * not matter, because parallel calls can arrive in any order.
 * @param turns Turns of one episode with token ids, in an order that does not depend on the order of the calls
 * @returns The chains in the order of their first turns
 */
export function chainsOf(turns: readonly Turn[]): TurnChain[] {
  if (turns.length < 2) return turns.map((turn) => [turn]);
  const chains: Turn[][] = [];
  /** The chains that may continue, by agent, policy, version and temperature. */
  const open = new Map<string, Turn[][]>();
  // A call continues a turn whose prompt is shorter than its own, so that turn comes before it.
  for (const turn of turns.toSorted((a, b) => a.prompt.length - b.prompt.length)) {
    const key = JSON.stringify([turn.agent, turn.policy, turn.policyVersion, turn.temperature]);
    const others = open.get(key) ?? [];
    open.set(key, others);
    const chain = longest(others.filter((other) => goesOnFrom(turn, other.at(-1) as Turn)));
    if (chain === undefined) {
      const opened = [turn];
      others.push(opened);
      chains.push(opened);
    } else chain.push(turn);
  }
  const position = new Map(turns.map((turn, i) => [turn, i]));
  const first = ([turn]: TurnChain) => position.get(turn as Turn) as number;
  return chains.sort((a, b) => first(a) - first(b));
}

/** The chain with the most tokens; the first of several. Undefined for an empty list. */
function longest(chains: readonly Turn[][]): Turn[] | undefined {
  const end = (chain: readonly Turn[]) => lengthOf(chain.at(-1) as Turn);
  return chains.reduce<Turn[] | undefined>(
    (best, chain) => (best === undefined || end(chain) > end(best) ? chain : best),
    undefined,
  );
}

const lengthOf = ({ prompt, response }: Turn) => prompt.length + response.length;

function goesOnFrom({ prompt }: Turn, before: Turn): boolean {
  const length = lengthOf(before);
  if (before.response.length === 0 || prompt.length < length) return false;
  // From the end, because calls that begin alike differ in their last tokens.
  for (let t = length - 1; t >= before.prompt.length; t--)
    if (prompt[t] !== before.response[t - before.prompt.length]) return false;
  for (let t = before.prompt.length - 1; t >= 0; t--) if (prompt[t] !== before.prompt[t]) return false;
  return true;
}

export function countChains(episodes: readonly Episode[]): Readonly<Record<string, NonNullable<AgentStep['chains']>>> {
  const lengths = new Map<string, number[][]>();
  for (const episode of episodes) {
    const ofEpisode = new Map<string, number[]>();
    for (const chain of chainsOf(inCanonicalOrder(trainedTurns(episode)))) {
      const { agent } = chain[0] as Turn;
      ofEpisode.set(agent, [...(ofEpisode.get(agent) ?? []), chain.length]);
    }
    for (const [agent, counts] of ofEpisode) {
      const all = lengths.get(agent);
      if (all === undefined) lengths.set(agent, [counts]);
      else all.push(counts);
    }
  }
  return Object.fromEntries(
    Array.from(lengths, ([agent, counts]) => {
      const turns = counts.flat();
      const perEpisode = mean(counts.map(({ length }) => length));
      return [agent, { perEpisode, turns: mean(turns), longest: largest(turns) }];
    }),
  );
}

/**
 * A policy's turns of a step as chains, in the order of tasks and samples. Within an episode the chains have the
 * canonical order of their first turns.
 */
export function learntChains(policy: string, groups: readonly EpisodeGroup[]): TurnChain[] {
  return groups
    .flatMap(({ episodes }) => episodes)
    .flatMap(({ turns }) => chainsOf(inCanonicalOrder(turns).filter((turn) => turn.policy === policy)));
}
