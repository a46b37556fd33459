/** Tokens of playing and learning, by agent, and their cost if a policy has a price. */
import { promptTokens, responseTokens, type Turn } from '../episode.js';
import { mean } from '../statistics.js';

/** The numbers of tokens that were read, written and trained. */
export interface TokenCount {
  /** Tokens of prompts. A prefix that prompts share counts for each prompt. */
  readonly read: number;
  readonly written: number;
  /** Tokens of prompts and responses in updates, once an epoch, before equal rows are merged. */
  readonly trained: number;
}

/** The price of a million tokens, in a currency that the user chooses. */
export interface Price {
  readonly read: number;
  readonly write: number;
  readonly train: number;
}

export const costOf = ({ read, written, trained }: TokenCount, price: Price): number =>
  (read * price.read + written * price.write + trained * price.train) / 1e6;

/** The tokens that turns read and wrote. For an endpoint, the numbers that it reported; without them, 0. */
export function playedTokens(turns: readonly Turn[]): TokenCount {
  const over = (of: (turn: Turn) => number | undefined) => turns.reduce((sum, turn) => sum + (of(turn) ?? 0), 0);
  return { read: over(promptTokens), written: over(responseTokens), trained: 0 };
}

/** The mean number of response tokens of the turns that have one; without such turns the field is absent. */
export function meanResponseTokens(turns: readonly Pick<Turn, 'response' | 'endpoint'>[]): {
  readonly responseTokens?: number;
} {
  const counts = turns.flatMap((turn) => responseTokens(turn) ?? []);
  return counts.length === 0 ? {} : { responseTokens: mean(counts) };
}

/** The tokens, with their cost if there is a price. */
export function priced(tokens: TokenCount, price: Price | undefined): Spending {
  return price === undefined ? { tokens } : { tokens, cost: costOf(tokens, price) };
}

/** Tokens and their cost, in the currency of the prices. */
export interface Spending {
  readonly tokens: TokenCount;
  /** Absent if no policy has a price. */
  readonly cost?: number;
}

/** The sum of several spendings. */
export function spentTogether(all: readonly Spending[]): Spending {
  const over = (of: (tokens: TokenCount) => number) => all.reduce((sum, { tokens }) => sum + of(tokens), 0);
  const tokens = {
    read: over(({ read }) => read),
    written: over(({ written }) => written),
    trained: over(({ trained }) => trained),
  };
  const costs = all.flatMap(({ cost }) => cost ?? []);
  return costs.length === 0 ? { tokens } : { tokens, cost: costs.reduce((sum, cost) => sum + cost, 0) };
}
