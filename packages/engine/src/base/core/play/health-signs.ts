import type { FailureReason } from '../episode.js';

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
  /**
   * The standard deviation of the agent's rewards within a group, averaged over the groups in which it has two turns.
   * Absent if there are none. Logs of earlier versions have 0 for a group with one turn.
   */
  readonly groupSpread?: number;
  /** The share of turns whose text the agent wrote in another episode of the task too. */
  readonly duplicates: number;
  /** The share of the agent's invalid turns that got a positive advantage. Absent if no turn was invalid. */
  readonly rewardedInvalid?: number;
  /**
   * The share of chance in the agent's rewards: the variance of the rewards of equal texts of a task, over the variance
   * of all of its rewards of that task. 0: the text decides; 1: it decides nothing. Absent if texts hardly repeat.
   */
  readonly chance?: number;
  /** Whether it begins the episodes of all of the step's tasks with the same prompt. Absent if it does not. */
  readonly samePrompt?: true;
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

const REMEDIES: Readonly<Record<FailureReason, string>> = {
  error: 'Fix the team first: the message shows where its code threw.',
  'invalid-output':
    "If this happens often, the model is too weak for the output that the team's code needs: show it some answers in a warm start (`npx drmas demonstrate` records the answers of a hosted model, of a script or of you, see docs/recipes.md), or use a larger model or a simpler schema. Code that catches the error decides itself what the episode earns.",
  reward: "Fix the team's reward first: the message shows what it returned, or where it threw.",
  overlong: 'Use a model with a longer context, a smaller maxTokens, or shorter results of tools.',
  timeout:
    'Use a longer time limit (training.episodeTimeoutMs, or the one of the program that the message names), a lower training.concurrency, or faster tools.',
  'too-many-turns':
    "The agents did not come to an end, and earn 0 for it. If too few episodes end, set a higher training.maxTurns (or the limit of the team's framework, such as recursionLimit), or show agents the end in a warm start.",
  backend: 'Check whether the server that samples is up.',
};

/** Advice for episodes that fail for this reason; a newer version's log may have reasons that are not known here. */
export const remedyOfFailure = (reason: string | undefined): string =>
  REMEDIES[reason as FailureReason] ?? 'Read the message first.';
