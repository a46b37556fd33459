/** The names of `drmas/backends`: the contract of a backend, for a backend of your own. */

export {
  type BackendDefinition,
  type BackendPlan,
  type BackendPlugin,
  defineBackend,
  type ExportRequest,
  type Footprint,
  ListPolicy,
  type LossGradient,
  lossGradient,
  type MemoryPlan,
  type OpenOptions,
  type PlannedPolicy,
  type PreparedExport,
  type SizedModel,
} from '@drmas/engine/backends';
export type {
  AgentAdapters,
  Backend,
  BaseSpec,
  Capabilities,
  CriticHandle,
  ForwardBackwardResult,
  GenerateRequest,
  Generation,
  Handles,
  Hardware,
  ModelHandle,
  OnTokens,
  OptimizerSettings,
  OptimStepResult,
  OptimStepSettings,
  OwnWeights,
  PartRates,
  PlayableHandle,
  PolicyHandle,
  Role,
  StateOptions,
  ValueLossResult,
  ValueLossSettings,
  WeightsSpec,
} from '@drmas/engine/contract';
export type { Clock, FileLock, Files, Host, SharedDirectories } from '@drmas/engine/host';
export type { BlockFormat, MatrixKind } from '@drmas/engine/kernels';
export type { ForwardBackwardOptions, SampleRatios, TokenRatios } from '@drmas/engine/loss';
export type { BaseKind, BlockFormats, Matrix } from '@drmas/engine/model';
export type { Span, Tokenizer, TrainingSample, ValueSample } from '@drmas/engine/nouns';
