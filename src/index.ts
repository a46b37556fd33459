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
export { type SamplerInput, sglang, vllm } from './backends/samplers/sampler-spec.js';
export { type TinkerInput, tinker } from './backends/tinker/tinker-spec.js';
export type { Conversation } from './backends/voice.js';
export type { AdapterSettings, DecoderConfig, ProjectionName, RopeScaling } from './contract/architecture.js';
export type { Sampling } from './contract/sampling.js';
export type { TurnRecord } from './core/advantage.js';
export type {
  Episode,
  EpisodeGroup,
  Failure,
  FailureReason,
  FinishReason,
  History,
  LogEntry,
  Score,
  Turn,
} from './core/episode.js';
export {
  ArgumentError,
  BackendError,
  CheckpointError,
  DrmasError,
  EndpointError,
  EpisodeError,
  EpisodeOverError,
  type FilePlace,
  HubError,
  NonFiniteError,
  RecipeError,
  RunError,
  TaskError,
  TokenizerError,
  TrainingError,
  UnattributedCallError,
} from './core/errors.js';
export type {
  AgentEvaluation,
  EvaluationEvent,
  EvaluationScores,
  Interval,
} from './core/evaluation/evaluation-event.js';
export type {
  AgentHealth,
  AgentStep,
  CheckpointEvent,
  EpisodeFailed as EpisodeFailedEvent,
  EventBody,
  EventStamp,
  GroupKinds,
  MetricSink,
  PolicyStep,
  RunEvent,
  RunFinished as RunFinishedEvent,
  RunStarted as RunStartedEvent,
  Spike as SpikeEvent,
  Step as StepEvent,
  Warmup as WarmupEvent,
  Warning as WarningEvent,
} from './core/events.js';
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
export type { EventSink } from './core/play/event-sink.js';
export type { Phase, PlayProgress, Round } from './core/play/play-observer.js';
export type { RunSpending } from './core/play/run-spending.js';
export type { Price, Spending, TokenCount } from './core/play/token-count.js';
export type { TrainingBudget } from './core/play/training-budget.js';
export { type KeyPart, type RandomKey, RandomStream } from './core/random.js';
export type { Secret } from './core/secret.js';
export type { DataSchema, Split, Task, TaskSet, TaskSource, Trace } from './core/task.js';
export type { Tokenizer } from './core/tokenizer.js';
export type { Issue } from './core/validation/issues.js';
export type { Row as TokenNumbers } from './loss/aggregate.js';
export { type EntropyResult, entropyBonus } from './loss/entropy.js';
export { type KlKind, klPenalty } from './loss/kl.js';
export type { LossSpec } from './loss/loss-spec.js';
export type { LossMetrics } from './loss/objective/objective-options.js';
export { type PolicyLossInput, type PolicyLossOptions, type PolicyLossResult, policyLoss } from './loss/policy-loss.js';
export { type ValueLossOptions, type ValueLossResult, valueLoss } from './loss/value-loss.js';
export { whiten } from './loss/whiten.js';
export type { AgentProfile } from './model/agent-profile.js';
export {
  type CheckpointSpec,
  type ChoiceTableInput,
  type ChoiceTableSpec,
  checkpoint,
  choiceTable,
  type LoraInput,
  type LoraOptions,
  lora,
  type ModelInput,
  type SavedAdapter,
  type TinyDecoderInput,
  type TinyDecoderSpec,
  tinyDecoder,
  type WholeModelInput,
  type WholeModelSpec,
} from './model/model-spec.js';
export type { BytesSpec, SymbolsSpec } from './model/tokenizers/tokenizer-spec.js';
export {
  type AgentName,
  type Assignment,
  defineRecipe,
  type RecipeDefinition,
  type RecipeInput,
} from './recipe/define.js';
export { type FrozenInput, frozen } from './recipe/frozen.js';
export type { Recipe, RecipeCode } from './recipe/recipe.js';
export type { RecipeSettings } from './recipe/recipe-schema.js';
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
} from './recipe/settings-input.js';
export type {
  AgentStage,
  AgentSummary,
  Curve,
  RunSummary,
  VariantSpending,
  VariantSummary,
} from './report/analysis/ablation-summary.js';
export type { ParetoPicture, ParetoPoint } from './report/analysis/aims/pareto-front.js';
export type { PairedDifference } from './report/analysis/paired-differences.js';
export {
  type EvaluateOptions,
  evaluate,
  type ResumeOptions,
  type RunStart,
  resume,
  type TrainOptions,
  type TrainResult,
  train,
} from './run/api.js';
export {
  type DataOf,
  type LoadedTeam,
  type LoadTeamOptions,
  loadTeam,
  type OutcomeOf,
  type PlayedTask,
  type PlayTaskOptions,
} from './run/load-team.js';
export { type TrainedAgents, type TrainedAgentsOptions, trainedAgents } from './serve/trained-agents.js';
export { type AblateOptions, type AblationPlan, type AblationResult, ablate } from './studies/ablation/ablate.js';
export type { PlannedRun } from './studies/ablation/ablation-plan.js';
export { weightVectors } from './studies/ablation/weight-vectors.js';
export { bestOfN, majorityOfN, worstOfN } from './tasks/best-of-n.js';
export { type DemonstrationOptions, withDemonstrations } from './tasks/files/demonstrations.js';
export { file, jsonl, type QuestionAndAnswer } from './tasks/files/file-source.js';
export type { FileRow } from './tasks/files/row-fields.js';
export { type ArithmeticTask, arithmetic, arithmeticSymbols } from './tasks/generated/arithmetic.js';
export { calculate } from './tasks/generated/calculator.js';
export {
  type EncyclopediaSearch,
  type EncyclopediaTask,
  encyclopedia,
  encyclopediaSearch,
} from './tasks/generated/encyclopedia.js';
export type { EncyclopediaAgent, EncyclopediaPrompt } from './tasks/generated/encyclopedia-traces.js';
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
export { mix } from './tasks/mix.js';
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
} from './teams/language-model.js';
export { boxed, integer, oneOf, type Parser, tagged } from './teams/parsers.js';
export {
  type PipelineAgent,
  type PipelineOptions,
  type PipelineOutcome,
  type PipelineReply,
  type PipelineTask,
  pipeline,
} from './teams/pipeline.js';
export {
  type PlannerExecutorVerifierOptions,
  type PlannerExecutorVerifierOutcome,
  type PlanStep,
  plannerExecutorVerifier,
} from './teams/planner-executor-verifier.js';
export {
  type SearchPrompt,
  type SearchRoleOptions,
  type SearchTask,
  type SearchTeamOptions,
  searchTeam,
} from './teams/search.js';
export {
  type DraftVerdict,
  type SolverVerifierOptions,
  type SolverVerifierOutcome,
  solverVerifier,
} from './teams/solver-verifier.js';
export { type SupportDeskOptions, type SupportDeskOutcome, supportDesk } from './teams/support-desk.js';
export {
  type Agents,
  type Ask,
  type AskOptions,
  defineTeam,
  type Metrics,
  type OnlyAgents,
  type PlayContext,
  type Reply,
  type Reward,
  type RewardContext,
  type RewardParts,
  type RewardValue,
  type Team,
  type TeamDefinition,
  type TurnReward,
} from './teams/team.js';
export type { AgentWays, GatewayConnection, OpenAIConnection } from './teams/ways-in.js';
