/** What `import ... from 'drmas'` offers. */
export { estimateAdvantages } from './advantage/estimate.js';
export type { Estimator } from './advantage/estimators/index.js';
export { filterGroups } from './advantage/filter.js';
export type {
  AnsweredText,
  AnswerOptions,
  GeneratedText,
  GenerateOptions,
  TokenIds,
} from './backends/embedded/generate-options.js';
export { type LoadPolicyOptions, loadPolicy, loadTokenizer } from './backends/embedded/load-policy.js';
export type { LoadedPolicy } from './backends/embedded/loaded-policy.js';
export type { EndpointOptions } from './backends/endpoint/endpoint-spec.js';
export { type TinkerInput, tinker } from './backends/tinker/tinker-spec.js';
export type { Conversation } from './backends/voice.js';
export type { TurnRecord } from './core/advantage.js';
export type { Episode, EpisodeGroup, Turn } from './core/episode.js';
export {
  ArgumentError,
  BackendError,
  CheckpointError,
  DrmasError,
  EndpointError,
  EpisodeOverError,
  HubError,
  NonFiniteError,
  RecipeError,
  RunError,
  TaskError,
  TokenizerError,
  TrainingError,
} from './core/errors.js';
export type { MetricSink, RunEvent } from './core/events.js';
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
} from './core/message.js';
export type { PlayProgress } from './core/play/play-observer.js';
export { RandomStream } from './core/random.js';
export type { Task, TaskSet, TaskSource, Trace } from './core/task.js';
export type { Tokenizer } from './core/tokenizer.js';
export { entropyBonus } from './loss/entropy.js';
export { klPenalty } from './loss/kl.js';
export type { LossSpec } from './loss/loss-spec.js';
export { policyLoss } from './loss/policy-loss.js';
export { valueLoss } from './loss/value-loss.js';
export { whiten } from './loss/whiten.js';
export type { AgentProfile } from './model/agent-profile.js';
export {
  type CheckpointSpec,
  checkpoint,
  type LoraInput,
  type LoraOptions,
  lora,
  type ModelInput,
  type SavedAdapter,
  type TinyDecoderInput,
  tinyDecoder,
  type WholeModelInput,
} from './model/model-spec.js';
export { type Assignment, defineRecipe, type RecipeDefinition, type RecipeInput } from './recipe/define.js';
export { type FrozenInput, frozen } from './recipe/frozen.js';
export {
  type EvaluateOptions,
  evaluate,
  type ResumeOptions,
  resume,
  type TrainOptions,
  type TrainResult,
  train,
} from './run/api.js';
export { type AblateOptions, type AblationResult, ablate } from './studies/ablation/ablate.js';
export { bestOfN, majorityOfN, worstOfN } from './tasks/best-of-n.js';
export { file, jsonl } from './tasks/files/file-source.js';
export { type ArithmeticTask, arithmetic, arithmeticSymbols } from './tasks/generated/arithmetic.js';
export { calculate } from './tasks/generated/calculator.js';
export { type EncyclopediaTask, encyclopedia, encyclopediaSearch } from './tasks/generated/encyclopedia.js';
export { encyclopediaSymbols } from './tasks/generated/encyclopedia-words.js';
export {
  amountOf,
  amountText,
  itemList,
  type OrderItem,
  type OrderTask,
  orderSymbols,
  orders,
  orderText,
  twoDigitAmount,
} from './tasks/generated/orders.js';
export { type TicketTask, ticketSymbols, tickets } from './tasks/generated/tickets.js';
export { type ToolboxTask, toolbox } from './tasks/generated/toolbox.js';
export { type ToolboxVersion, toolboxCommand, toolboxSymbols } from './tasks/generated/toolbox-commands.js';
export { type Sandbox, type SandboxReport, toolboxSandbox } from './tasks/generated/toolbox-sandbox.js';
export { extractBoxed } from './tasks/grading/boxed.js';
export { gradeMath } from './tasks/grading/math.js';
export { exactMatch, normalizeAnswer, tokenF1 } from './tasks/grading/question-answering.js';
export { averageAtK, type BootstrapInterval, bootstrapInterval, majorityAtK, passAtK } from './tasks/metrics.js';
export { type Bm25Options, bm25Retriever } from './tasks/retrieval/bm25.js';
export { type CorpusFields, readCorpus } from './tasks/retrieval/corpus.js';
export type { Passage, Retriever, Search } from './tasks/retrieval/retriever.js';
export { type SearchR1Options, searchR1Retriever } from './tasks/retrieval/search-r1.js';
export type {
  ArithmeticOptions,
  EncyclopediaOptions,
  FileOptions,
  JsonlOptions,
  OrdersOptions,
  TicketsOptions,
  ToolboxOptions,
} from './tasks/task-options.js';
export { type Agent, type AgentSpec, agent } from './teams/agent.js';
export { boxed, integer, oneOf, type Parser, tagged } from './teams/parsers.js';
export { type PipelineAgent, type PipelineOptions, type PipelineOutcome, pipeline } from './teams/pipeline.js';
export {
  type PlannerExecutorVerifierOptions,
  type PlannerExecutorVerifierOutcome,
  plannerExecutorVerifier,
} from './teams/planner-executor-verifier.js';
export { type SearchPrompt, type SearchTask, type SearchTeamOptions, searchTeam } from './teams/search.js';
export {
  type DraftVerdict,
  type SolverVerifierOptions,
  type SolverVerifierOutcome,
  solverVerifier,
} from './teams/solver-verifier.js';
export { type SupportDeskOptions, type SupportDeskOutcome, supportDesk } from './teams/support-desk.js';
export {
  defineTeam,
  type Metrics,
  type Reply,
  type Reward,
  type RewardContext,
  type Team,
  type TeamDefinition,
} from './teams/team.js';
