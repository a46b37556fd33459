/** The advantages of tasks that are played once, found by trying an estimator on a few turns. */
import type { TurnRecord } from '@drmas/engine/nouns';
import type { OpenEstimator } from '../define-estimator.js';
import { TurnBatch } from '../turn-batch.js';

export interface LoneEpisodes {
  /** Whether the estimator compares the episodes of a task, so that other advantages result if there is one. */
  readonly compares: boolean;
  /** Whether no turn of an episode that is alone gets an advantage. */
  readonly silent: boolean;
}

const EPISODES = 4;
const TURNS = 4;

/**
 * Tries an estimator on four episodes with different rewards: of two tasks, and each of a task of its own.
 * @param agents The agents of the team
 */
export function loneEpisodes(estimator: OpenEstimator, agents: readonly string[]): LoneEpisodes {
  const estimate = (tasks: number): number[] | undefined => {
    try {
      return Array.from(estimator.compute(new TurnBatch(turnsOf(tasks, agents)))).flat();
    } catch {
      return undefined; // An estimator of the user's own may need what these turns lack.
    }
  };
  const [together, alone] = [estimate(2), estimate(EPISODES)];
  if (together === undefined || alone === undefined) return { compares: false, silent: false };
  return {
    compares: together.some((advantage, i) => advantage !== alone[i]),
    silent: alone.every((advantage) => Math.abs(advantage) < 1e-9),
  };
}

function turnsOf(tasks: number, agents: readonly string[]): TurnRecord[] {
  return Array.from({ length: EPISODES * TURNS }, (_, i) => {
    const episode = Math.floor(i / TURNS);
    const number = ((7 * i + 3 * episode) % 11) / 11;
    const parts = { correct: (episode % 3) / 2 };
    return {
      task: `${episode % tasks}`,
      episode: `${episode}`,
      agent: agents[(i % TURNS) % agents.length] ?? 'agent',
      turn: i % TURNS,
      envStep: i % TURNS,
      chain: i % TURNS,
      reward: number,
      outcome: parts.correct,
      stepReward: number,
      agentStepReward: number,
      baseline: 0,
      parts,
      observation: `${i}`,
      length: 1,
      values: [0],
    };
  });
}
