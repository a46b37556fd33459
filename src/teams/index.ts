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
export { boxed, integer, oneOf, type Parser, tagged } from './team/parsers.js';
export {
  type PipelineOutcome,
  pipeline,
} from './team/pipeline.js';
export {
  type PlannerExecutorVerifierOutcome,
  type PlanStep,
  plannerExecutorVerifier,
} from './team/planner-executor-verifier.js';
export { searchTeam } from './team/search.js';
export {
  type SolverVerifierOutcome,
  solverVerifier,
} from './team/solver-verifier.js';
export {
  type Agents,
  type Ask,
  type AskOptions,
  defineTeam,
  type Limits,
  type PlayContext,
  type Reply,
  type Reward,
  type RewardContext,
  type Team,
  type TeamDefinition,
} from './team/team.js';
