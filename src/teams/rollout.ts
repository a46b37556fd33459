/** Door of `teams`: rollouts: episodes, their executors and failures. */
export { isCallName, nameOf } from './rollout/call-keys.js';
export { EpisodeFailure, placeOf } from './rollout/episode-failure.js';
export { groupsByEpisode, inProcessExecutor, type RolloutExecutor } from './rollout/executor.js';
export { playEpisode } from './rollout/play-episode.js';
export { demandedSchema, isAnyObject, promptMessages, redemanded, undemanded } from './rollout/prompt-messages.js';
export { asAnswered, turnsNamedIn, withoutStop } from './rollout/prompts/exact-ids.js';
export {
  answerOf,
  type PlayRequest,
  type RemoteSettings,
  readable,
  remoteSettings,
  remoteSpeakers,
  type SpeakerRequest,
} from './rollout/remote-speakers.js';
export { finiteReward } from './rollout/reward-values.js';
export type {
  AdaptedAgents,
  AgentSettings,
  EpisodeInPlay,
  ForeignAskOptions,
  RolloutContext,
  RolloutSettings,
  TokenCounts,
  Versions,
} from './rollout/rollout-context.js';
export { rolloutSchema } from './rollout/rollout-schema.js';
export {
  applyFailureRule,
  type CostOfCalls,
  costOfCalls,
  type FailureRule,
  failedScore,
  isMeasured,
  missingParts,
  noCost,
  noScore,
  playedTurns,
} from './rollout/score.js';
