/** Door of `runs`: runs from request to last event: train, resume, evaluate. */
export {
  type EvaluateOptions,
  evaluate,
  evaluateRun,
  type ResumeOptions,
  type RunStart,
  resume,
  resumeIn,
  type TrainOptions,
  type TrainResult,
  train,
  trainIn,
} from './run/api.js';
export {
  LoadedTeam,
  type LoadTeamOptions,
  loadTeam,
} from './run/load-team.js';
export {
  agentsOfRun,
  backendOfRun,
  checkpointOf,
  lastCheckpoint,
  requestRecipe,
  requestStudy,
  requireServerOfRun,
  serverKeyOfRun,
} from './run/request.js';
export { fetchRun } from './run/run-store.js';
export { type RunPlace, thisProcess } from './run/start-run.js';
export { allowStored } from './run/stored-data.js';
export { shownTracker } from './trackers/index.js';
