/** Door of `base`: the nouns of the project: tasks, messages, turns, episodes, samples, tokenizers. */
export type { TurnRecord } from './core/advantage.js';
export {
  agentReward,
  type Episode,
  type EpisodeGroup,
  type Failure,
  type FailureReason,
  type FinishReason,
  type History,
  inCanonicalOrder,
  isLesson,
  isOfAgents,
  isUnscored,
  type LogEntry,
  responseTokens,
  type Score,
  shareOfForeign,
  successOf,
  type Turn,
  trainedTurns,
  turnReward,
  turnText,
  withoutUnscored,
} from './core/episode.js';
export {
  type Headline,
  HOW_TO_SUCCEED,
  headlineOf,
  labelOfPart,
  measuresOf,
  rewardsOf,
} from './core/evaluation.js';
export { contentText, jsonText, readable, stringify } from './core/json-text.js';
export {
  assistant,
  type JsonSchema,
  type Message,
  messageText,
  system,
  type Tool,
  type ToolCall,
  type ToolChoice,
  toolResult,
  user,
} from './core/message.js';
export type { Span, TrainingSample, ValueSample } from './core/sample.js';
export {
  type DataSchema,
  fieldText,
  fittedSet,
  GENERATED_INDICES,
  type LoadOptions,
  type Split,
  type Task,
  type TaskOrigin,
  type TaskSet,
  type TaskSource,
  type Trace,
} from './core/task.js';
export type { Tokenizer } from './core/tokenizer.js';
