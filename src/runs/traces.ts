/** Door of `runs`: traces of production teams and transcripts as demonstrations and tasks. */
export { PlayedPrompts } from './traces/demanded-schemas.js';

export {
  importFiles,
  importTraces,
  readTracedTeam,
  rewriteDemonstrations,
  type TracedTeam,
  type TraceImport,
  writeTracedTeam,
} from './traces/import-traces.js';
export type { Redact } from './traces/redact.js';
export { unreadTexts } from './traces/unread.js';
