/** The names of `drmas/settings`: the types of a recipe's settings. */
export type { Secret } from '../base/core/secret.js';
export type { Sampling } from '../engine/contract/sampling.js';
export type { TextRequest, Utterance } from '../engine/contract/text-backend.js';
export type { EndpointOptions } from '../engine/endpoint/endpoint-spec.js';
export type { CompleteText, TextModelOptions, TextReply } from '../engine/endpoint/text-model.js';
export type { AgentProfile } from '../engine/model/agent-profile.js';
export type {
  CheckpointSpec,
  ChoiceTableInput,
  ChoiceTableSpec,
  LoraInput,
  LoraOptions,
  SavedAdapter,
  TinyDecoderInput,
  TinyDecoderSpec,
  WholeModelInput,
  WholeModelSpec,
} from '../engine/model/model-spec.js';
export type { BytesSpec, SymbolsSpec } from '../engine/model/tokenizers/tokenizer-spec.js';
export type { SamplerInput } from '../engine/samplers/sampler-spec.js';
export type { AgentName, AssignmentInput as Assignment } from '../method/recipe/define.js';
export type { FrozenInput, PoolInput, PoolOptions } from '../method/recipe/frozen.js';
export type { RecipeCode } from '../method/recipe/recipe.js';
export type { RecipeSettings } from '../method/recipe/recipe-schema.js';
export type {
  AgentInput,
  BackendInput,
  EstimatorInput,
  EvaluationInput,
  GatewayInput,
  LossInput,
  PolicyInput,
  RolloutInput,
  TrainingInput,
  WarmStartInput,
} from '../method/recipe/settings-input.js';
export type { RunStart } from '../runs/run/api.js';
export type { AblationPlan } from '../runs/studies/ablation/ablate.js';
export type { PlannedRun } from '../runs/studies/ablation/ablation-plan.js';
export type { TinkerInput } from '../tinker/client/tinker-spec.js';
