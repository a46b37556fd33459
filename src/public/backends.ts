/** The names of `drmas/backends`: the contract of a backend, for a backend of your own. */
export type { Clock } from '../base/core/clock.js';
export type { FileLock, Files, SharedDirectories } from '../base/core/files.js';
export type { Host } from '../base/core/host.js';
export type { Span, TrainingSample, ValueSample } from '../base/core/sample.js';
export type { Tokenizer } from '../base/core/tokenizer.js';
export {
  type BackendDefinition,
  type BackendPlan,
  type BackendPlugin,
  defineBackend,
  type ExportRequest,
  type Footprint,
  type MemoryPlan,
  type OpenOptions,
  type PlannedPolicy,
  type PreparedExport,
  type SizedModel,
} from '../engine/backends/backend-declaration.js';
export { type LossGradient, lossGradient } from '../engine/backends/forward-backward.js';
export { ListPolicy } from '../engine/backends/list-policy.js';
export type { Backend } from '../engine/contract/backend.js';
export type { Capabilities, Hardware } from '../engine/contract/capabilities.js';
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
} from '../engine/contract/handles.js';
export type {
  OptimizerSettings,
  OptimStepResult,
  OptimStepSettings,
  PartRates,
} from '../engine/contract/optimizer-settings.js';
export type { GenerateRequest, Generation, OnTokens, PlayableHandle } from '../engine/contract/sampling.js';
export type { AgentAdapters, BaseSpec, OwnWeights, WeightsSpec } from '../engine/contract/weights-spec.js';
export type { ForwardBackwardOptions, SampleRatios, TokenRatios } from '../engine/loss/objective/objective-sums.js';
export type { BaseKind, BlockFormats, Matrix } from '../engine/model/decoder/weights/decoder-tensors.js';
export type { BlockFormat } from '../engine/tensor/blocks.js';
export type { MatrixKind } from '../engine/tensor/kernel-arguments.js';
