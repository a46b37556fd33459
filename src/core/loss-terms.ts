/** Means over the tokens of an update. Each is absent where the loss lacks the term. */
export interface LossTerms {
  /**
   * The KL penalty to the reference policy, without its coefficient. In a step's event it is measured before the update
   * and averaged over turns.
   */
  readonly referenceKl?: number;
  /** The weight of importance correction. */
  readonly importanceWeight?: number;
  /** The share of tokens whose importance ratio exceeds the cap. */
  readonly importanceBeyond?: number;
  /** The |ratio x advantage| that clipping removed, where the loss is divided by 1 + this (ST-PPO). */
  readonly clippingBias?: number;
}
