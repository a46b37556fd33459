/** The names of `drmas/settings`: the types of a recipe's settings. */

export type { CheckpointSpec, LoraInput, TinyDecoderInput } from '@drmas/engine';
export type { Sampling, TextRequest, Utterance } from '@drmas/engine/contract';
export type { CompleteText, EndpointOptions, SamplerInput, TextModelOptions, TextReply } from '@drmas/engine/endpoints';
export type { Secret } from '@drmas/engine/host';
export type {
  AgentProfile,
  ChoiceTableInput,
  ChoiceTableSpec,
  LoraOptions,
  SavedAdapter,
  TinyDecoderSpec,
  WholeModelInput,
  WholeModelSpec,
} from '@drmas/engine/model';
export type { BytesSpec, SymbolsSpec } from '@drmas/engine/tokens';
export type { TinkerInput } from '@drmas/tinker';
export type { AgentName, AssignmentInput as Assignment } from '../method/recipe/define.js';
export type { FrozenInput } from '../method/recipe/frozen.js';
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
