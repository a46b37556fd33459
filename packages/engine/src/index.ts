/**
 * The names of `@drmas/engine`, and of `drmas/engine`: language models that sample, score and learn, for a training
 * loop of one's own.
 */

export type { ContentWithCalls, Conversation } from './backends/agent-reply.js';
export type {
  AdapterSettings,
  DecoderConfig,
  Device,
  Precision,
  ProjectionName,
  RopeScaling,
  ShortConvolution,
  SlidingWindow,
} from './contract/architecture.js';
export type { ForwardBackwardResult } from './contract/handles.js';
export type { OptimStepResult } from './contract/optimizer-settings.js';
export type {
  AnsweredText,
  AnswerOptions,
  GeneratedText,
  GenerateOptions,
  TokenIds,
} from './embedded/generate-options.js';
export type { LoadPolicyOptions } from './embedded/load-policy.js';
export type { EngineHardware } from './embedded/thread/engine-thread.js';
export {
  ArgumentError,
  BackendError,
  CheckpointError,
  DrmasError,
  HubError,
  NonFiniteError,
  TokenizerError,
} from './errors.js';
export type { Completion, CompletionOptions, CompletionRequest, GroupRequest, Prompt } from './library/completion.js';
export {
  type EngineOptions,
  type ModelOptions,
  openEngine,
  openModel,
  type TrainingEngine,
} from './library/open-engine.js';
export type { TrainableModel } from './library/trainable-model.js';
export { type Sample, type ScoredSample, trainingSample } from './library/training-sample.js';
export type { LossChoice, OptimizerChoice, StepOptions, UpdateOptions } from './library/update-options.js';
export type { KlTerm } from './loss/kl.js';
export type { LossMetrics } from './loss/loss-metrics.js';
export { RandomStream } from './math.js';
export {
  type CheckpointSpec,
  checkpoint,
  type LoraInput,
  lora,
  type TinyDecoderInput,
  tinyDecoder,
  type WholeModelInput,
} from './model/model-spec.js';
export type { AdamWSettings } from './model/optimizers/adamw.js';
export type { NigtSettings } from './model/optimizers/nigt.js';
export type { SgdSettings } from './model/optimizers/sgd.js';
export type { Span, Tokenizer } from './nouns.js';
export { assistant, type Message, system, type Tool, type ToolCall, toolResult, user } from './nouns.js';
