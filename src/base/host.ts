/** Door of `base`: the host of a run: clock, files, signals, listeners of a run, texts and secrets. */
export { type Clock, systemClock, waitMs } from './core/clock.js';
export { type Files, joinPath, type SharedDirectories } from './core/files.js';
export {
  byteText,
  duration,
  excerpt,
  grouped,
  percent,
  shellWord,
  short,
  significant,
  visible,
} from './core/format.js';
export { type Host, TORCH_DEVICES, type TorchDevice } from './core/host.js';
export { isSilent, ROUNDING, remedyOfFailure } from './core/play/health-signs.js';
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
} from './core/play/run-listener.js';
export { type RunSpending, runSpending, type TrainingBudget, trainingBudget } from './core/play/spending.js';
export {
  type Price,
  playedTokens,
  priced,
  type Spending,
  spentTogether,
  type TokenCount,
} from './core/play/token-count.js';
export { Secret } from './core/secret.js';
export {
  defineTracker,
  type TrackedRun,
  type TrackerDeclaration,
  type TrackerPlugin,
} from './core/tracker-declaration.js';
