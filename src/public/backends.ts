/** The names of `drmas/backends`: the contract of a backend, for a backend of your own. */

export type { Clock, FileLock, Files, Host, SharedDirectories } from '../base/host.js';
export type { Span, Tokenizer, TrainingSample, ValueSample } from '../base/nouns.js';
export type { Footprint, MemoryPlan, PlannedPolicy, SizedModel } from '../engine/backends.js';
export {
  type BackendDefinition,
  type BackendPlan,
  type BackendPlugin,
  defineBackend,
  type ExportRequest,
  ListPolicy,
  type LossGradient,
  lossGradient,
  type OpenOptions,
  type PreparedExport,
} from '../engine/backends.js';
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
} from '../engine/contract.js';
export type { ForwardBackwardOptions, SampleRatios, TokenRatios } from '../engine/loss.js';
export type { BaseKind, BlockFormats, Matrix } from '../engine/model.js';
export type { BlockFormat, MatrixKind } from '../engine/tensor.js';
