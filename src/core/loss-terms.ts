/** Means over the tokens of an update, each where the loss has the term. */
export interface LossTerms {
  /** KL penalty to the reference policy, before its coefficient. Of a step: before the update, the mean over turns. */
  readonly referenceKl?: number;
  /** Weight of importance correction, and share of tokens whose importance exceeds the cap. */
  readonly importanceWeight?: number;
  readonly importanceBeyond?: number;
  /** |ratio x advantage| that clipping left out, where the loss is divided by 1 + it. */
  readonly clippingBias?: number;
}
