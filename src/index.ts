/** The names of `drmas`. Further names are in `drmas/tasks`, `drmas/teams`, `drmas/events` and the other subpaths. */

export { defineBackend } from '@drmas/engine/backends';
export { sglang, vllm } from '@drmas/engine/endpoints';
export {
  ArgumentError,
  BackendError,
  CheckpointError,
  DrmasError,
  EndpointError,
  EpisodeError,
  EpisodeOverError,
  HubError,
  NonFiniteError,
  RecipeError,
  RunError,
  TaskError,
  TokenizerError,
  TrainingError,
  UnattributedCallError,
} from '@drmas/engine/errors';
export type { EvaluationEvent, MetricSink, RunEvent, ScoredEvaluation } from '@drmas/engine/events';
export type { EventSink } from '@drmas/engine/host';
export { defineTracker } from '@drmas/engine/host';
export type { LossSpec } from '@drmas/engine/loss';
export { defineLoss, entropyBonus, klPenalty, lossFrom, policyLoss, valueLoss } from '@drmas/engine/loss';
export { whiten } from '@drmas/engine/math';
export { checkpoint, choiceTable, lora, type ModelInput, tinyDecoder } from '@drmas/engine/model';
export type { LoadedPolicy } from '@drmas/engine/node';
export { loadPolicy, loadTokenizer } from '@drmas/engine/node';
export type { Episode, Task, TaskSet, TaskSource, Tokenizer, Trace, Turn } from '@drmas/engine/nouns';
export { assistant, type Message, system, type Tool, type ToolCall, toolResult, user } from '@drmas/engine/nouns';
export { defineEstimator, filterGroups } from './method/advantage.js';
export type { Plugin, Recipe } from './method/recipe.js';
export { defineRecipe, frozen, type RecipeDefinition, type RecipeInput } from './method/recipe.js';

import './gateway/index.js'; // its adapters add their connections to the types of agents

export { tinker } from '@drmas/tinker';
export { type Estimator, estimateAdvantages } from './runs/composition.js';
export {
  type EvaluateOptions,
  evaluate,
  type LoadedTeam,
  type LoadTeamOptions,
  loadTeam,
  type ResumeOptions,
  resume,
  type TrainOptions,
  type TrainResult,
  train,
} from './runs/index.js';
export { type AblateOptions, type AblationResult, ablate } from './runs/studies.js';
export { type TrainedAgents, type TrainedAgentsOptions, trainedAgents } from './serve/index.js';
export type {
  PipelineOutcome,
  PlannerExecutorVerifierOutcome,
  PlanStep,
  SolverVerifierOutcome,
} from './teams/index.js';
export {
  type Agent,
  type AgentSpec,
  type Agents,
  agent,
  boxed,
  defineTeam,
  integer,
  type Limits,
  oneOf,
  type Parser,
  type PlayContext,
  pipeline,
  plannerExecutorVerifier,
  type Reply,
  type Reward,
  type RewardContext,
  searchTeam,
  solverVerifier,
  type Team,
  type TeamDefinition,
  tagged,
} from './teams/index.js';
export { file, jsonl, withDemonstrations } from './teams/task-files.js';
export {
  arithmetic,
  arithmeticSymbols,
  averageAtK,
  bootstrapInterval,
  exactMatch,
  extractBoxed,
  gradeMath,
  majorityAtK,
  mix,
  passAtK,
  tokenF1,
} from './teams/tasks.js';
