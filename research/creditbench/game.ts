/**
 * A finite game that a team plays: calls of agents, chance, and an end with rewards. Games are small, so the right
 * credit of each choice is computed by enumeration instead of being estimated.
 */

import type { RandomStream } from '@drmas/engine/math';
import { z } from 'zod';

/** The words of an agent's answer. A choice is the index of one; -1 stands for an answer that is none of them. */
export const codes = ['k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7', 'k8'] as const;
export const signs = ['silent', 'slow', 'hot', 'frozen'] as const;
export const owners = Array.from({ length: 24 }, (_, i) => `owner${i + 1}`);

export const ticketSchema = z.strictObject({
  /** The index of a sign; it decides the right codes. */
  sign: z
    .int()
    .min(0)
    .max(signs.length - 1),
  /** The index of an owner; it decides nothing. */
  owner: z
    .int()
    .min(0)
    .max(owners.length - 1),
  /** The value of the family's knob. */
  difficulty: z.number(),
});
/** A task of a family. */
export type Ticket = z.output<typeof ticketSchema>;

/** An agent has to choose one of the codes. */
export interface Call {
  readonly kind: 'call';
  readonly agent: string;
  /** The words that the agent sees. */
  readonly prompt: string;
  /** The step of the episode that this call belongs to; agents that act at once share it. */
  readonly round: number;
  readonly right: number;
  /** The name of the state: equal names have equal futures within a ticket. */
  readonly state: string;
  after(choice: number): Node;
}

/** Something happens with a probability that no agent changes. */
export interface Chance {
  readonly kind: 'chance';
  readonly probability: number;
  readonly state: string;
  after(happens: boolean): Node;
}

export interface End {
  readonly kind: 'end';
  /** The named parts of the team's reward. */
  readonly team: Readonly<Record<string, number>>;
  /** The rewards of single agents, in place of the team's. */
  readonly agents?: Readonly<Record<string, number>>;
  /** The own reward of each turn, if turns have any. */
  readonly turns?: readonly number[];
  /** How well the team did, without luck: exactly 1 if all choices were right. */
  readonly score: number;
}

export type Node = Call | Chance | End;

/** The probability of each code, in the order of `codes`. */
export type Policy = (call: Call) => readonly number[]; // [8]

export const rewardOf = ({ team, agents }: End, agent: string): number =>
  agents?.[agent] ?? Object.values(team).reduce((sum, part) => sum + part, 0);

/** The own reward of a turn. */
export const ownReward = ({ turns }: End, turn: number): number => turns?.[turn] ?? 0;

/** The agent's reward together with the own rewards of all turns. */
const wholeReward = (end: End, agent: string): number =>
  (end.turns ?? []).reduce((sum, each) => sum + each, rewardOf(end, agent));

/** A policy that makes each agent right with this probability, and any wrong code equally likely. */
export const skilled =
  (probability: (agent: string) => number): Policy =>
  ({ agent, right }) =>
    codes.map((_, i) => (i === right ? probability(agent) : (1 - probability(agent)) / (codes.length - 1)));

export interface Move {
  readonly call: Call;
  readonly choice: number;
}

/** Plays from a node to the end. */
export function playFrom(
  node: Node,
  choose: (call: Call) => number,
  random: RandomStream,
): { readonly moves: readonly Move[]; readonly end: End } {
  const moves: Move[] = [];
  let at = node;
  while (at.kind !== 'end') {
    if (at.kind === 'chance') at = at.after(random.chance(at.probability));
    else {
      const choice = choose(at);
      moves.push({ call: at, choice });
      at = at.after(choice);
    }
  }
  return { moves, end: at };
}

/** Draws a code from a policy. */
export function draw(policy: Policy, call: Call, random: RandomStream): number {
  let left = random.uniform();
  const probabilities = policy(call);
  for (const [i, probability] of probabilities.entries()) {
    left -= probability;
    if (left < 0) return i;
  }
  return probabilities.length - 1;
}

/** The exact values of one ticket's game under a policy. */
export class Values {
  readonly #policy: Policy;
  readonly #known = new Map<string, number>();

  constructor(policy: Policy) {
    this.#policy = policy;
  }

  /** The agent's expected reward from this node on. */
  of(node: Node, agent: string): number {
    if (node.kind === 'end') return wholeReward(node, agent);
    const key = `${agent} ${node.state}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const value =
      node.kind === 'chance'
        ? node.probability * this.of(node.after(true), agent) +
          (1 - node.probability) * this.of(node.after(false), agent)
        : this.#policy(node).reduce(
            (sum, probability, i) => (probability === 0 ? sum : sum + probability * this.of(node.after(i), agent)),
            0,
          );
    this.#known.set(key, value);
    return value;
  }

  /** The right credit of a choice: what it adds to the agent's expected reward, compared with the policy's choice. */
  credit({ call, choice }: Move): number {
    return this.of(call.after(choice), call.agent) - this.of(call, call.agent);
  }
}
