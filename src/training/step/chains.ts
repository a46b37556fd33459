/** Chains: the calls of an agent that go on exactly where an earlier one ended, as those of a loop over tools do. */
import { type Episode, inCanonicalOrder, type Turn, trainedTurns } from '../../core/episode.js';
import type { AgentStep } from '../../core/events.js';
import { mean } from '../../core/statistics.js';

/** The turns of one conversation, the first of which opened it; the tokens of each begin with all tokens before. */
export type Chain = readonly Turn[];

/**
 * The chains of an episode's turns. A call goes on with the chain whose end, the prompt and the response of its last
 * turn, is the longest that its own prompt begins with, token for token; where there is none it opens a chain. So every
 * turn is in exactly one chain, and every prompt is what was fed. Turns are of one chain only where agent, policy,
 * version of the policy and temperature are the same.
 *
 * A chain goes on once: of two calls that begin alike the second opens a chain of its own. The order of the calls
 * decides nothing, for parallel calls may come in any.
 * @param turns Turns of one episode with token ids, in an order that does not depend on that of the calls
 * @returns The chains in the order of their first turns
 */
export function chainsOf(turns: readonly Turn[]): Chain[] {
  if (turns.length < 2) return turns.map((turn) => [turn]);
  const chains: Turn[][] = [];
  /** By agent, policy, version and temperature: the chains, each of which may go on. */
  const open = new Map<string, Turn[][]>();
  // What a call goes on from is shorter than its prompt, and so is the prompt in it: it comes before.
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
  const place = new Map(turns.map((turn, i) => [turn, i]));
  const first = ([turn]: Chain) => place.get(turn as Turn) as number;
  return chains.sort((a, b) => first(a) - first(b));
}

/** The first of the chains whose last turn ends furthest; undefined of none. */
function longest(chains: readonly Turn[][]): Turn[] | undefined {
  const end = (chain: readonly Turn[]) => lengthOf(chain.at(-1) as Turn);
  return chains.reduce<Turn[] | undefined>(
    (best, chain) => (best === undefined || end(chain) > end(best) ? chain : best),
    undefined,
  );
}

const lengthOf = ({ prompt, response }: Turn) => prompt.length + response.length;

/** Whether a turn's prompt begins with all tokens of another one. */
function goesOnFrom({ prompt }: Turn, before: Turn): boolean {
  const length = lengthOf(before);
  if (before.response.length === 0 || prompt.length < length) return false;
  // From the end: calls that begin alike differ in what was written last.
  for (let t = length - 1; t >= before.prompt.length; t--)
    if (prompt[t] !== before.response[t - before.prompt.length]) return false;
  for (let t = before.prompt.length - 1; t >= 0; t--) if (prompt[t] !== before.prompt[t]) return false;
  return true;
}

/** The chains of the agents that train, counted over episodes, by agent. */
export function countChains(episodes: readonly Episode[]): Readonly<Record<string, NonNullable<AgentStep['chains']>>> {
  /** By agent: the numbers of turns in its chains, episode by episode. */
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
      return [agent, { perEpisode, turns: mean(turns), longest: Math.max(...turns) }];
    }),
  );
}
