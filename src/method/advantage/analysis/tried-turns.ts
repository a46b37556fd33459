/** A few turns on which an estimator is tried, to find a property that it does not declare. */
import type { TurnRecord } from '@drmas/engine/nouns';
import type { OpenEstimator } from '../define-estimator.js';
import { TurnBatch } from '../turn-batch.js';

export const EPISODES = 4;
const TURNS = 4;

interface TriedTurns {
  /** The number of tasks that the episodes are of. */
  readonly tasks: number;
  /** The agents of the team. */
  readonly agents: readonly string[];
  /** The tokens of each turn; 1 by default. */
  readonly tokens?: number;
  /** Whether tokens have rewards of their own, as a KL in the reward gives them. */
  readonly ofTokens?: boolean;
}

/** The advantages of four episodes with different rewards. Undefined if the estimator needs what these turns lack. */
export const triedOn = (estimator: OpenEstimator, turns: TriedTurns) => advantagesOf(estimator, turnsOf(turns));

function advantagesOf(estimator: OpenEstimator, turns: readonly TurnRecord[]): (number | number[])[] | undefined {
  try {
    return Array.from(estimator.compute(new TurnBatch(turns)));
  } catch {
    return undefined; // it may be the user's own
  }
}

/** A cost that is small beside a success of 1. */
const SMALL_COST = 1e-3;

/**
 * Whether small costs count as much as success in a task whose episodes all fail, because the estimator divides by the
 * spread of a task's rewards.
 */
export function enlargesCosts(estimator: OpenEstimator, agents: readonly string[]): boolean {
  const turns = turnsAtCosts(agents, SMALL_COST);
  const advantages = advantagesOf(estimator, turns) ?? [];
  const largest = (ofTask: string) =>
    Math.max(0, ...advantages.flatMap((each, i) => (turns[i]?.task === ofTask ? [each].flat().map(Math.abs) : [])));
  return largest('1') > largest('0') / 2;
}

/** Whether twice the costs give nearly the same advantages. */
export function evensOutCosts(estimator: OpenEstimator, agents: readonly string[]): boolean {
  const [once = [], twice = []] = [0.1, 0.2].map((cost) => advantagesOf(estimator, turnsAtCosts(agents, cost))?.flat());
  return once.length > 0 && once.every((each, i) => Math.abs(each - (twice[i] as number)) < 0.01);
}

/** Turns of two tasks: of one an episode succeeds, of the other none. Each episode has another cost of its calls. */
function turnsAtCosts(agents: readonly string[], cost: number): TurnRecord[] {
  return turnsOf({ tasks: 2, agents }).map((turn) => {
    const success = Number(turn.episode === '0'); // tasks have the episodes 0 and 2, and 1 and 3
    const reward = success - cost * Number(turn.episode);
    const parts = { outcome: success, calls: reward - success };
    return { ...turn, reward, outcome: reward, stepReward: reward, agentStepReward: reward, parts };
  });
}

/**
 * Whether an estimator gives the tokens of a turn different advantages.
 * @param turns.ofTokens Whether a KL in the reward gives tokens rewards of their own
 */
export function tellsTokensApart(
  estimator: OpenEstimator,
  turns: { readonly agents: readonly string[]; readonly ofTokens: boolean },
): boolean {
  const advantages = triedOn(estimator, { tasks: 2, tokens: 3, ...turns }) ?? [];
  return advantages.some((each) => typeof each !== 'number' && each.some((of) => of !== each[0]));
}

function turnsOf({ tasks, agents, tokens = 1, ofTokens = false }: TriedTurns): TurnRecord[] {
  return Array.from({ length: EPISODES * TURNS }, (_, i) => {
    const episode = Math.floor(i / TURNS);
    const number = ((7 * i + 3 * episode) % 11) / 11;
    const parts = { correct: ((3 * episode + 1) % EPISODES) / (EPISODES - 1) };
    return {
      task: `${episode % tasks}`,
      episode: `${episode}`,
      agent: agents[(i % TURNS) % agents.length] ?? 'agent',
      turn: i % TURNS,
      envStep: i % TURNS,
      chain: i % TURNS,
      reward: parts.correct + number,
      outcome: parts.correct,
      stepReward: number,
      agentStepReward: number,
      baseline: 0,
      parts,
      observation: `${i}`,
      length: tokens,
      values: Array.from({ length: tokens }, (_, t) => t / 2),
      ...(ofTokens && { tokenRewards: Array.from({ length: tokens }, (_, t) => t / 2) }),
    };
  });
}
