/** The positions start <= t < end of a sequence. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * A training example of a policy: one sequence of T tokens. A turn with P prompt and R response tokens becomes T = P +
 * R with the mask 0 on the prompt and 1 on the response. A chain of turns, in which each prompt extends the turn
 * before, becomes the sequence of its last turn with the mask 1 on all responses. Entry t of log-probs and advantages
 * belongs to token t (not to the position that predicts it). Entries with the mask 0 are ignored.
 */
export interface TrainingSample {
  readonly tokens: Int32Array; // [T]
  readonly mask: Uint8Array; // [T], 1 where the policy wrote the token
  /**
   * The positions of the responses in a chain of several turns, in order. Each response is a row of the loss. Without
   * spans the whole sequence is one row.
   */
  readonly spans?: readonly Span[];
  readonly behaviourLogprobs: Float32Array; // [T], at `temperature`
  readonly advantages: Float32Array; // [T]
  /** The log-probs of the reference policy at `temperature`; a KL term of the loss needs them. */
  readonly referenceLogprobs?: Float32Array; // [T]
  /** The log-probs of the policy before the update, at `temperature`; importance correction needs them. */
  readonly proximalLogprobs?: Float32Array; // [T]
  readonly temperature: number;
  /**
   * The version of the policy that wrote the response. No loss reads it; training with rollouts ahead needs it
   * to bound staleness.
   */
  readonly policyVersion: number;
  /** The agent whose turns these are; gradients are reported per agent. */
  readonly agent: string;
  /**
   * The number of tokens that the policy wrote in the sample's whole episode. The aggregation `episode-mean` divides by
   * it. Without it the sample is an episode by itself.
   */
  readonly episodeTokens?: number;
}

/** A training example of a critic: a sequence as above, with the critic's values before the update and the returns. */
export interface ValueSample {
  readonly tokens: Int32Array; // [T]
  readonly mask: Uint8Array; // [T], 1 where the policy wrote the token
  readonly oldValues: Float32Array; // [T], before the update
  readonly returns: Float32Array; // [T]
}
