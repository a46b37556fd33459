/** The names of `drmas/losses`: policy losses, and one of your own. */

export type { LossMetrics } from '@drmas/engine';
export type { TokenNumbers } from '@drmas/engine/loss';
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
  type LossSchema,
  type LossSpec,
  type LossToken,
  lossFrom,
  lossNamed,
  type OwnLoss,
  type PolicyLossInput,
  type PolicyLossOptions,
  type PolicyLossResult,
  type ProtocolLoss,
  policyLoss,
  type TokenLoss,
  type TokenOutcome,
  type ValueLossGradient as ValueLossResult,
  type ValueLossOptions,
  valueLoss,
} from '@drmas/engine/loss';
export { whiten } from '@drmas/engine/math';
