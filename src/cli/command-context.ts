import type { RunEvent } from '../core/events.js';
import type { Host } from '../core/host.js';
import type { Stream } from './reporter/screen.js';
import type { Work } from './wiring.js';

/** The surroundings of a command: its streams, its environment and the work that it may call. */
export interface CommandContext {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly environment: NodeJS.ProcessEnv;
  /** Fires on the first Ctrl-C. */
  readonly signal: AbortSignal;
  /** Does work that an interruption must not cut short. */
  readonly protect: Host['protect'];
  readonly work: Work;
}

/**
 * The exit code of an interrupted run. The others: 0 done; 1 the run failed, 2 the request was wrong
 * (`DrmasError.exitCode`).
 */
export const INTERRUPTED = 130;

/** The sink of `--json`: it writes one event a line to stdout. */
export const jsonSink = (context: CommandContext) => ({
  write: (event: RunEvent) => void context.stdout.write(`${JSON.stringify(event)}\n`),
});
