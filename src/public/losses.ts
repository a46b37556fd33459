/** The names of `drmas/losses`: policy losses, and one of your own. */
export { whiten } from '../base/core/statistics.js';
export type { TokenNumbers } from '../engine/loss/aggregate.js';
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
} from '../engine/loss/define-loss.js';
export { type EntropyResult, entropyBonus } from '../engine/loss/entropy.js';
export { type KlKind, klPenalty } from '../engine/loss/kl.js';
export { type LossPlugin, lossFrom } from '../engine/loss/loss-from.js';
export type { LossMetrics } from '../engine/loss/loss-metrics.js';
export { type AnyLoss, type KnownLoss, type LossSpec, lossNamed, type OwnLoss } from '../engine/loss/loss-spec.js';
export {
  type PolicyLossInput,
  type PolicyLossOptions,
  type PolicyLossResult,
  policyLoss,
} from '../engine/loss/policy-loss.js';
export {
  type ValueLossGradient as ValueLossResult,
  type ValueLossOptions,
  valueLoss,
} from '../engine/loss/value-loss.js';
