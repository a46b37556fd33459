/** A turn as the estimators see it. */
export interface TurnRecord {
  readonly task: string;
  readonly episode: string;
  readonly agent: string;
  readonly turn: number;
  /** The episode's reward for this agent, plus the turn's own reward, minus the turn's penalties. */
  readonly reward: number;
  /**
   * The named parts of the episode's reward for this agent, which are included in `reward`. Absent if the team names
   * none.
   */
  readonly parts?: Readonly<Record<string, number>>;
  /** The episode's reward without penalties; `episodeScore: 'outcome'` reads it. */
  readonly outcome?: number;
  /** The episode's reward for this agent without penalties, if the agent has its own reward. Default: `outcome`. */
  readonly agentOutcome?: number;
  /** The number of response tokens. */
  readonly length?: number;
  /** The reward of each response token; `reward` itself falls on the last token and is added to it. */
  readonly tokenRewards?: readonly number[]; // [length]
  /** A critic's estimate of the return from each response token on. */
  readonly values?: readonly number[]; // [length]
  /**
   * The baseline that is subtracted from the reward: the agent's reward in a greedy episode of the task (ReMax), or the
   * mean reward of episodes that were played again from this turn on (counterfactual).
   */
  readonly baseline?: number;
  /**
   * Numbers of other signals that the estimator needs, by the signal's name: one for the turn, or one for each token.
   */
  readonly signals?: Readonly<Record<string, number | readonly number[]>>;
  /** The state that the agent saw; turns with equal observations can be compared. */
  readonly observation?: string;
  /**
   * The reward of this step of the environment: the rewards of its turns minus their penalties. The last step also gets
   * the outcome.
   */
  readonly stepReward?: number;
  /**
   * The same for the turn's agent alone: the rewards of its turns in the step minus their penalties. Its last step also
   * gets the episode's reward for the agent.
   */
  readonly agentStepReward?: number;
  /**
   * The index of the turn's chain in the episode. A chain is a sequence of turns of one agent in which each prompt
   * extends the turn before, as in a tool loop. Without an index the turn is a chain by itself.
   */
  readonly chain?: number;
  /** The index of the environment's step in the episode, for turns that share a step. By default each is a step. */
  readonly envStep?: number;
}
