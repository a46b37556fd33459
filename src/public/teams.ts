/** The names of `drmas/teams`: teams and their agents. */
export {
  assistant,
  type JsonSchema,
  type Message,
  system,
  type Tool,
  type ToolCall,
  type ToolChoice,
  toolResult,
  user,
} from '@drmas/engine/nouns';
export type { DataOf, OutcomeOf, PlayedTask, PlayTaskOptions } from '../runs/run/load-team.js';
export { type Agent, type AgentSpec, agent } from '../teams/team/agent.js';
export { boxed, integer, oneOf, type Parser, type Penalised, tagged, type UsingParser } from '../teams/team/parsers.js';
export {
  type PipelineAgent,
  type PipelineOptions,
  type PipelineOutcome,
  type PipelineReply,
  type PipelineTask,
  pipeline,
} from '../teams/team/pipeline.js';
export {
  type PlannerExecutorVerifierOptions,
  type PlannerExecutorVerifierOutcome,
  type PlanStep,
  plannerExecutorVerifier,
} from '../teams/team/planner-executor-verifier.js';
export {
  type SearchPrompt,
  type SearchRoleOptions,
  type SearchTask,
  type SearchTeamOptions,
  searchTeam,
} from '../teams/team/search.js';
export {
  type DraftVerdict,
  type SolverVerifierOptions,
  type SolverVerifierOutcome,
  solverVerifier,
} from '../teams/team/solver-verifier.js';
export type { SchemaResult, StandardSchema } from '../teams/team/standard-schema.js';
export {
  type Agents,
  type Ask,
  type AskOptions,
  defineTeam,
  type GroupRewardContext,
  type Limits,
  type Metrics,
  type OnlyAgents,
  type PlayContext,
  type PrepareContext,
  type RankedEpisode,
  type Reply,
  type Reward,
  type RewardContext,
  type RewardParts,
  type RewardValue,
  type Team,
  type TeamDefinition,
  type TurnReward,
} from '../teams/team/team.js';
