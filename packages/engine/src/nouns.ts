/** The nouns of the project: tasks, messages, turns, episodes, samples, tokenizers. */
export type { TurnRecord } from './base/core/advantage.js';
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
  promptTokens,
  responseTokens,
  type Score,
  scoredGroups,
  shareOfForeign,
  successOf,
  type Turn,
  trainedTurns,
  turnReward,
  turnText,
  withoutUnscored,
} from './base/core/episode.js';
export {
  evaluatedEpisodes,
  type Headline,
  HOW_TO_SUCCEED,
  headlineOf,
  isScored,
  labelOfPart,
  lacksSuccess,
  measuresOf,
  rewardsOf,
} from './base/core/evaluation.js';
export { contentText, jsonText, readable, stringify } from './base/core/json-text.js';
export {
  argumentsText,
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
} from './base/core/message.js';
export type { Span, TrainingSample, ValueSample } from './base/core/sample.js';
export type { Issue } from './base/core/task.js';
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
} from './base/core/task.js';
export type { Tokenizer } from './base/core/tokenizer.js';
