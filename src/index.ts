/** The names of `drmas`. Further names are in `drmas/tasks`, `drmas/teams`, `drmas/events` and the other subpaths. */

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
} from './base/errors.js';
export type { EvaluationEvent, MetricSink, RunEvent } from './base/events.js';
export type { EventSink } from './base/host.js';
export { defineTracker } from './base/host.js';
export { whiten } from './base/math.js';
export type { Episode, Task, TaskSet, TaskSource, Tokenizer, Trace, Turn } from './base/nouns.js';
export { assistant, type Message, system, type Tool, type ToolCall, toolResult, user } from './base/nouns.js';
export { defineBackend, sglang, vllm } from './engine/backends.js';
export type { LoadedPolicy } from './engine/embedded.js';
export { loadPolicy, loadTokenizer } from './engine/embedded.js';
export type { LossSpec } from './engine/loss.js';
export { defineLoss, entropyBonus, klPenalty, lossFrom, policyLoss, valueLoss } from './engine/loss.js';
export { checkpoint, choiceTable, lora, type ModelInput, tinyDecoder } from './engine/model.js';
export { defineEstimator, filterGroups } from './method/advantage.js';
export type { Plugin, Recipe } from './method/recipe.js';
export { defineRecipe, frozen, pool, type RecipeDefinition, type RecipeInput } from './method/recipe.js';

import './gateway/index.js'; // its adapters add their connections to the types of agents

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
export { type AblateOptions, type AblationResult, ablate, weightVectors } from './runs/studies.js';
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
  normalizeAnswer,
  passAtK,
  tokenF1,
} from './teams/tasks.js';
export { tinker } from './tinker/client.js';
