/** Door of `method`: runs on disk: directory, event log, episodes, checkpoints. */
export {
  type AblationRecord,
  countRuns,
  MOST_RUNS,
  readAblation,
  requireSameAblation,
  type Variant,
  variantsOf,
  writeAblation,
} from './store/ablation-record.js';
export { agentModelPath, type Checkpoint } from './store/checkpoint-files.js';
export {
  type EpisodeAdvantages,
  readEpisodes,
  type StoredEpisode,
  type StoredTurn,
  storedEpisode,
  writeEpisodes,
} from './store/episode-files.js';
export { fieldAt, type LogPlace, type LogRow, nameAt, numberAt, readRows, rowsAt } from './store/event-log.js';
export { RunDirectory, type RunDirectoryOptions } from './store/run-directory.js';
export { isAlive, LOCK, lockHolder, lockRun } from './store/run-lock.js';
export {
  ABLATION,
  CHECKPOINTS,
  defaultRunPath,
  EPISODES,
  EVENTS,
  missingRun,
  RECIPE,
  REFERENCES,
  requireFree,
  requireRun,
  runsBeside,
  timeStamp,
} from './store/run-path.js';
export type { RunRecord } from './store/run-record.js';
export { episodeFault, eventFault } from './store/stored-shapes.js';
export { changedRecords, verifyRun } from './store/verify-run.js';
