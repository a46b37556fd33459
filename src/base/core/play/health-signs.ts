/**
 * Counts of groups by their outcomes. Groups with equal outcomes are all right if all of their episodes succeed (for an
 * agent with its own reward: if it earns more than 0), and all wrong otherwise.
 */
export interface GroupKinds {
  readonly allRight: number;
  readonly allWrong: number;
  readonly mixed: number;
  /** Groups with equal outcomes whose rewards differ by penalties alone; they are counted above as well. */
  readonly penaltyOnly: number;
}

/** Signs of an agent that stops learning: too little spread, copies, rewards for invalid outputs. */
export interface AgentHealth {
  /** The standard deviation of the agent's rewards within a group, averaged over groups. */
  readonly groupSpread: number;
  /** The share of turns whose text the agent wrote in another episode of the task too. */
  readonly duplicates: number;
  /** The share of the agent's invalid turns that got a positive advantage. */
  readonly rewardedInvalid: number;
  /** The agent's groups by their outcomes, judged by its reward. */
  readonly groups: GroupKinds;
}

/** An advantage whose absolute value is smaller counts as 0: it is only rounding. */
export const ROUNDING = 1e-9;

interface Learning {
  readonly maxAbsAdvantage: number;
  readonly gradientNorm: number;
}

/** Whether a step changed nothing about an agent: no advantage, no gradient, or no call of the agent. */
export function isSilent(agent: Learning | undefined): boolean {
  return agent === undefined || agent.maxAbsAdvantage < ROUNDING || agent.gradientNorm === 0;
}
