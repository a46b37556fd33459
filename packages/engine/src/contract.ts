/** The contract between a backend and the training loop: handles, capabilities, settings. */
export {
  type AdapterSettings,
  type DecoderConfig,
  ENGINE_DEVICES,
  type EngineDevice,
  isTorchDevice,
  PRECISIONS,
  PROJECTIONS,
  type Precision,
  type ProjectionName,
} from './contract/architecture.js';
export { type Backend, backendIdentity } from './contract/backend.js';
export type { Capabilities, Hardware } from './contract/capabilities.js';
export type {
  CriticHandle,
  ForwardBackwardResult,
  Handles,
  ModelHandle,
  PolicyHandle,
  Role,
  StateOptions,
  ValueLossResult,
  ValueLossSettings,
} from './contract/handles.js';
export type {
  OptimizerSettings,
  OptimStepResult,
  OptimStepSettings,
  PartRates,
} from './contract/optimizer-settings.js';
export {
  type GenerateRequest,
  type Generation,
  isGreedy,
  type OnTokens,
  type PlayableHandle,
  responseRoom,
  type Sampling,
  scaleOfDraws,
  scaleOfScores,
} from './contract/sampling.js';
export type { TextBackend, TextMessage, TextRequest, Utterance } from './contract/text-backend.js';
export type { AgentAdapters } from './contract/weights-spec.js';
export {
  type BaseSpec,
  type OwnWeights,
  precisionsOf,
  type WeightsSpec,
} from './contract/weights-spec.js';
