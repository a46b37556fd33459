/** Door of `runs`: traces of production teams and transcripts as demonstrations and tasks. */
export { type RecordedEpisode, type RecordOptions, recordDemonstrations } from './traces/demonstration-rows.js';
export { readTraces, type TraceImport, writeImport } from './traces/import-traces.js';
export type { Redact } from './traces/redact.js';
