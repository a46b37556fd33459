/** A turn as the estimators see it. */
export interface TurnRecord {
  readonly task: string;
  readonly episode: string;
  readonly agent: string;
  readonly turn: number;
  /** The episode's reward for this agent, plus the reward of this turn alone, minus its penalties. */
  readonly reward: number;
  /** The episode's reward without penalties; `episodeScore: 'outcome'` reads it. */
  readonly outcome?: number;
  /** The number of response tokens. */
  readonly length?: number;
  /** The reward of each response token; `reward` itself falls on the last token and is added to it. */
  readonly tokenRewards?: readonly number[]; // [length]
  /** A critic's estimate of the return from each response token on. */
  readonly values?: readonly number[]; // [length]
  /**
   * The reward that this one is measured against: of a greedy episode of the task for this agent (ReMax), or the mean
   * over episodes that were played again from this turn on (counterfactual).
   */
  readonly baseline?: number;
  /** The state that the agent saw; turns with equal observations can be compared. */
  readonly observation?: string;
  /**
   * The reward of this step of the environment: that of the turn alone minus its penalties; the last step adds the
   * outcome.
   */
  readonly stepReward?: number;
  /**
   * The same for the turn's agent alone: what its turns of the step earned for themselves minus their penalties; its
   * last step adds the episode's reward for it.
   */
  readonly agentStepReward?: number;
  /**
   * The number of the chain in the episode that the turn is part of: turns of one agent, each of which went on from the
   * one before it, as the calls of a loop over tools. Without it the turn is a chain by itself.
   */
  readonly chain?: number;
  /** The position of the step in the episode where several turns share one step; by default each turn is one step. */
  readonly envStep?: number;
}
