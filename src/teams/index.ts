/** Door of `teams`: teams, agents and parsers. */
export { type Agent, type AgentSpec, agent } from './team/agent.js';
export type { AgentWays, EpisodeWays, GatewayConnection } from './team/agent-adapters.js';
export type {
  ContentPart,
  FunctionTool,
  Json,
  LanguageModel,
  ModelCall,
  ModelFinish,
  ModelResult,
  ModelStreamPart,
  ModelUsage,
  ModelWarning,
  PromptMessage,
  PromptPart,
  ProviderData,
  ProviderOptions,
} from './team/language-model.js';
export { boxed, integer, oneOf, type Parser, type Penalised, tagged, type UsingParser } from './team/parsers.js';
export {
  type PipelineAgent,
  type PipelineOptions,
  type PipelineOutcome,
  type PipelineReply,
  type PipelineTask,
  pipeline,
} from './team/pipeline.js';
export {
  type PlannerExecutorVerifierOptions,
  type PlannerExecutorVerifierOutcome,
  type PlanStep,
  plannerExecutorVerifier,
} from './team/planner-executor-verifier.js';
export {
  type SearchPrompt,
  type SearchRoleOptions,
  type SearchTask,
  type SearchTeamOptions,
  searchTeam,
} from './team/search.js';
export {
  type DraftVerdict,
  type SolverVerifierOptions,
  type SolverVerifierOutcome,
  solverVerifier,
} from './team/solver-verifier.js';
export {
  type Agents,
  type Ask,
  type AskOptions,
  defineTeam,
  type GroupRewardContext,
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
} from './team/team.js';
