/** The names of `drmas/settings`: the types of a recipe's settings. */

export type { Secret } from '../base/host.js';
export type { EndpointOptions, SamplerInput } from '../engine/backends.js';
export type { Sampling } from '../engine/contract.js';
export type {
  AgentProfile,
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
} from '../engine/model.js';
export type { BytesSpec, SymbolsSpec } from '../engine/tokens.js';
export type {
  AgentInput,
  AgentName,
  AssignmentInput as Assignment,
  BackendInput,
  EstimatorInput,
  EvaluationInput,
  FrozenInput,
  GatewayInput,
  LossInput,
  PolicyInput,
  RecipeCode,
  RecipeSettings,
  RolloutInput,
  TrainingInput,
  WarmStartInput,
} from '../method/recipe.js';
export type { RunStart } from '../runs/index.js';
export type { AblationPlan, PlannedRun } from '../runs/studies.js';
export type { TinkerInput } from '../tinker/client.js';
