/** A turn as the estimators see it. `reward` is the episode's reward for this agent minus the turn's own penalties. */
export interface TurnRecord {
  readonly task: string;
  readonly episode: string;
  readonly agent: string;
  readonly turn: number;
  readonly reward: number;
  /** The episode's reward without penalties, for `episodeScore: 'outcome'`. */
  readonly outcome?: number;
  /** Response tokens. */
  readonly length?: number;
  readonly tokenRewards?: readonly number[];
  readonly values?: readonly number[];
  readonly baseline?: number;
  readonly observation?: string;
  readonly stepReward?: number;
  readonly envStep?: number;
}
