/** What playing and learning take: tokens by agent, and what they cost where a policy has a price. */
import { responseTokens, type Turn } from '../episode.js';

export interface TokenCount {
  /** Tokens of prompts, shared prefixes counted each time. */
  readonly read: number;
  readonly written: number;
  /** Tokens of prompts and responses in updates, once an epoch, before equal rows are merged. */
  readonly trained: number;
}

/** The price of a million tokens, in whatever currency the user counts. */
export interface Price {
  readonly read: number;
  readonly write: number;
  readonly train: number;
}

export const costOf = ({ read, written, trained }: TokenCount, price: Price): number =>
  (read * price.read + written * price.write + trained * price.train) / 1e6;

/** The tokens that turns read and wrote. An endpoint's are those that it reported. */
export function playedTokens(turns: readonly Turn[]): TokenCount {
  const read = turns.reduce((sum, { prompt, endpoint }) => sum + (endpoint?.promptTokens ?? prompt.length), 0);
  return { read, written: turns.reduce((sum, turn) => sum + responseTokens(turn), 0), trained: 0 };
}

/** The tokens, with what they cost where there is a price. */
export function priced(tokens: TokenCount, price: Price | undefined): Spending {
  return price === undefined ? { tokens } : { tokens, cost: costOf(tokens, price) };
}

export interface Spending {
  readonly tokens: TokenCount;
  /** Absent where nothing has a price. */
  readonly cost?: number;
}

/** All spendings together. */
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
