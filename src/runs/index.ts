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
export { type RunPlace, thisProcess } from './run/execute/start-run.js';
export {
  LoadedTeam,
  type LoadTeamOptions,
  loadTeam,
} from './run/load-team.js';
export { checkpointOf, whileHeld, wholeCheckpoint } from './run/request/checkpoint-names.js';
export { requestRecipe, requestStudy } from './run/request/new-run.js';
export { agentsOfRun, backendOfRun, requireServerOfRun, serverKeyOfRun } from './run/request/recipe-of-run.js';
export { allowStored } from './run/request/stored-data.js';
export { fetchRun } from './run/run-store.js';
export { shownTracker } from './trackers/index.js';
