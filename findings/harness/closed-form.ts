/** The inflation of an agent that some episodes call once, in closed form. */

export interface RareCaller {
  /** The success of the episodes that call the agent, 0..1. */
  readonly called: number;
  /** The success of all episodes, strictly between 0 and 1. */
  readonly all: number;
  /** The number of episodes in a group. */
  readonly groupSize: number;
}

/**
 * The expected square of the agent's score under GRPO, over the groups that have both outcomes, for rewards of 0 or 1
 * and independent episodes of equal difficulty. In a group of G episodes of which F fail, a failure has the squared
 * score (G - F) / F and a success F / (G - F). The formula takes the mean over F. For large G it tends to
 * (q(1 - 2p) + p^2) / (p(1 - p)), with q = `called` and p = `all`, which is Lemma 4.2 of Dr. MAS; for small G it lies
 * below, because no squared score exceeds G - 1.
 */
export function rareCallerInflation({ called: q, all: p, groupSize: G }: RareCaller): number {
  const failures = (1 - p ** G) / (1 - p) - 1;
  const successes = (1 - (1 - p) ** G) / p - 1;
  const hasBoth = 1 - (1 - q) * (1 - p) ** (G - 1) - q * p ** (G - 1);
  return ((1 - q) * failures + q * successes) / hasBoth;
}
