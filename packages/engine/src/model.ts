/** Descriptions of models and optimisers; the decoder. */
export { type AgentProfile, agentProfileSchema, readAgentProfile, writeAgentProfile } from './model/agent-profile.js';
export type { SequenceScores, Upstream } from './model/decoder/decoder.js';
export { FlatOptimizer, type OptimizerState } from './model/decoder/flat-optimizer.js';
export type { Sequence } from './model/decoder/packed-batch.js';
export { clippedStep, gradientNorm, requireFinite, type TrainedPart } from './model/decoder/trained-part.js';
export { adapterParameterCount } from './model/decoder/weights/adapter-tensors.js';
export type { BaseKind, BlockFormats, Matrix } from './model/decoder/weights/decoder-tensors.js';
export { parameterCount } from './model/decoder/weights/decoder-tensors.js';
export { wholeWeights } from './model/initial-weights.js';
export { contextOf, tableSize } from './model/kinds/choice-table.js';
export { completeModel, isOtherModel, kindOfType, modelKindOf } from './model/kinds/index.js';
export { modelSchema } from './model/model-schema.js';
export type { ChoiceTableInput, LoraOptions, SavedAdapter, TinyDecoderSpec } from './model/model-spec.js';
export {
  type ChoiceTableSpec,
  checkpoint,
  choiceTable,
  completeWhole,
  lora,
  type ModelInput,
  type ModelSpec,
  type OtherModelSpec,
  tinyDecoder,
  type WholeModelInput,
  type WholeModelSpec,
  wholeModel,
} from './model/model-spec.js';
export type { AdamWSettings } from './model/optimizers/adamw.js';
export { nonNegative, positive } from './model/optimizers/define-optimizer.js';
export { defaultOptimizer, optimizerNamed, optimizerTypes } from './model/optimizers/index.js';
export { criticOptimizerSchema, optimizerSchema } from './model/optimizers/optimizer-schema.js';
