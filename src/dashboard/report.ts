/** Door of `dashboard`: the HTML report of runs. */
export { findRuns, lastWritten, RUNS, runState } from './report/find-runs.js';
export { DEFAULT_EPISODE_BYTES, writeReport } from './report/report.js';
