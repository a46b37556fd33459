/** Policy losses, KL, entropy and value loss. */

export type { TokenNumbers } from './loss/aggregate.js';
export { countTokens, countTokensOf, hasAdvantage, rowWeight } from './loss/aggregate.js';
export type {
  LossBatch,
  LossFacts,
  LossSchema,
  LossToken,
  ProtocolLoss,
  TokenLoss,
  TokenOutcome,
} from './loss/define-loss.js';
export {
  defineLoss,
  type LossDeclaration,
} from './loss/define-loss.js';
export type { EntropyResult } from './loss/entropy.js';
export { entropyBonus } from './loss/entropy.js';
export type { KlKind } from './loss/kl.js';
export { type KlTerm, klOfRatio, klPenalty } from './loss/kl.js';
export { type LossPlugin, loadLosses, lossFrom } from './loss/loss-from.js';
export { ownMetrics } from './loss/loss-metrics.js';
export type { OwnLoss } from './loss/loss-spec.js';
export {
  type AnyLoss,
  correctionOf,
  type KnownLoss,
  type LossSpec,
  lossKind,
  lossNamed,
  lossSchema,
  lossTypes,
} from './loss/loss-spec.js';
export { losses } from './loss/losses/index.js';
export { normalizerOf } from './loss/objective/merged-samples.js';
export { type Objective, objectiveOf } from './loss/objective/objective.js';
export type { ForwardBackwardOptions, SampleRatios, TokenRatios } from './loss/objective/objective-sums.js';
export { rowsOfSample } from './loss/objective/sample-rows.js';
export type { PolicyLossInput, PolicyLossOptions, PolicyLossResult } from './loss/policy-loss.js';
export { policyLoss } from './loss/policy-loss.js';
export type { ValueLossGradient, ValueLossOptions } from './loss/value-loss.js';
export { valueLoss } from './loss/value-loss.js';
