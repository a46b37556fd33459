/** The host of a run: clock, waiting, files, signals, listeners of a run, texts and secrets. */
export { type Clock, systemClock, waitMs } from './base/core/clock.js';
export type { FileLock } from './base/core/files.js';
export { type Files, joinPath, type SharedDirectories } from './base/core/files.js';
export {
  byteText,
  duration,
  excerpt,
  fixed,
  grouped,
  percent,
  shellWord,
  short,
  significant,
  visible,
} from './base/core/format.js';
export { type Host, TORCH_DEVICES, type TorchDevice } from './base/core/host.js';
export { isSilent, ROUNDING, remedyOfFailure } from './base/core/play/health-signs.js';
export {
  type AnsweredTurn,
  type BegunEpisode,
  type CallTime,
  type EpisodeListener,
  type EventSink,
  listenersTogether,
  type Phase,
  type PlayProgress,
  progressListener,
  type Round,
  type RunListener,
} from './base/core/play/run-listener.js';
export {
  playedEpisodes,
  type RunSpending,
  runSpending,
  type TrainingBudget,
  trainingBudget,
} from './base/core/play/spending.js';
export {
  meanResponseTokens,
  type Price,
  playedTokens,
  priced,
  type Spending,
  spentTogether,
  type TokenCount,
} from './base/core/play/token-count.js';
export { Secret } from './base/core/secret.js';
export type { TrackerDefinition } from './base/core/tracker-declaration.js';
export {
  defineTracker,
  type TrackedRun,
  type TrackerDeclaration,
  type TrackerPlugin,
} from './base/core/tracker-declaration.js';
export { macrotask, nextMacrotask } from './base/platform/macrotask.js';
export { onAbort, unlessAborted } from './base/platform/on-abort.js';
