/** Door of `runs`: studies of several runs: ablation, plan, probe, inspection, demonstrations. */
export { requireOwnAblation } from './run/request/stored-data.js';
export {
  type AblateOptions,
  type AblationPlan,
  type AblationResult,
  ablate,
  ablateIn,
} from './studies/ablation/ablate.js';
export type { PlannedRun } from './studies/ablation/ablation-plan.js';
export { weightVectors } from './studies/ablation/weight-vectors.js';
export {
  type Demonstrated,
  type DemonstratedTask,
  type DemonstrationRequest,
  recordTeam,
  requestDemonstrations,
} from './studies/demonstrate/demonstrate.js';
export {
  type AgentAnswer,
  type AgentQuestion,
  type Answerer,
  NoMoreAnswers,
  type Speaker,
  speakerOfModule,
} from './studies/demonstrate/speaker.js';
export { collectLog } from './studies/inspect/collect-turns.js';
export {
  comparableEstimator,
  type GroupFindings,
  type Inspection,
  inspect,
  storedRules,
} from './studies/inspect/inspect-log.js';
export { rehearsedTurns } from './studies/plan/dry-run.js';
export { type ForecastRequest, forecastRun, type RunForecast } from './studies/plan/forecast-run.js';
export type { ProbeReport } from './studies/plan/probe/probe-recipe.js';
export type { Tokens } from './studies/plan/token-budget.js';
