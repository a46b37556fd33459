/** The names of `drmas/losses`: policy losses, and one of your own. */

export { whiten } from '../base/math.js';
export type { LossMetrics, LossSchema, ProtocolLoss, TokenNumbers } from '../engine/loss.js';
export {
  type AnyLoss,
  defineLoss,
  type EntropyResult,
  entropyBonus,
  type KlKind,
  type KnownLoss,
  klPenalty,
  type LossBatch,
  type LossDeclaration,
  type LossFacts,
  type LossPlugin,
  type LossSpec,
  type LossToken,
  lossFrom,
  lossNamed,
  type OwnLoss,
  type PolicyLossInput,
  type PolicyLossOptions,
  type PolicyLossResult,
  policyLoss,
  type TokenLoss,
  type TokenOutcome,
  type ValueLossGradient as ValueLossResult,
  type ValueLossOptions,
  valueLoss,
} from '../engine/loss.js';
export { labLosses } from '../lab/index.js';
