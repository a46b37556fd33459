/** Door of `engine`: policy losses, KL, entropy and value loss. */
export { countTokens, countTokensOf, hasAdvantage, rowWeight, type TokenNumbers } from './loss/aggregate.js';
export {
  defineLoss,
  type LossBatch,
  type LossDeclaration,
  type LossFacts,
  type LossSchema,
  type LossToken,
  type ProtocolLoss,
  type TokenLoss,
  type TokenOutcome,
} from './loss/define-loss.js';
export { type EntropyResult, entropyBonus } from './loss/entropy.js';
export { type KlKind, type KlTerm, klOfRatio, klPenalty } from './loss/kl.js';
export { type LossPlugin, loadLosses, lossFrom } from './loss/loss-from.js';
export { type LossMetrics, ownMetrics } from './loss/loss-metrics.js';
export {
  type AnyLoss,
  correctionOf,
  type KnownLoss,
  type LossSpec,
  lossKind,
  lossNamed,
  lossSchema,
  lossTypes,
  type OwnLoss,
} from './loss/loss-spec.js';
export { losses } from './loss/losses/index.js';
export { normalizerOf } from './loss/objective/merged-samples.js';
export { type Objective, objectiveOf } from './loss/objective/objective.js';
export type { ForwardBackwardOptions, SampleRatios, TokenRatios } from './loss/objective/objective-sums.js';
export { rowsOfSample } from './loss/objective/sample-rows.js';
export { type PolicyLossInput, type PolicyLossOptions, type PolicyLossResult, policyLoss } from './loss/policy-loss.js';
export { type ValueLossGradient, type ValueLossOptions, valueLoss } from './loss/value-loss.js';
