/** Door of `runs`: traces of production teams and transcripts as demonstrations and tasks. */
export { asPlayed } from './traces/demanded-schemas.js';
export { type RecordedEpisode, type RecordOptions, recordDemonstrations } from './traces/demonstration-rows.js';
export {
  readTracedTeam,
  readTraces,
  rewriteDemonstrations,
  type TracedTeam,
  type TraceImport,
  writeImport,
  writeTracedTeam,
} from './traces/import-traces.js';
export type { Redact } from './traces/redact.js';
