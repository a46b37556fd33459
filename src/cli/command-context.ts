import type { RunEvent } from '../core/events.js';
import type { Host } from '../core/host.js';
import type { Stream } from './reporter/screen.js';
import type { Work } from './wiring.js';

/** What a command has around it. */
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

/** Exit codes beside 0: 1 the run failed, 2 the request was wrong (DrmasError knows which). */
export const INTERRUPTED = 130;

/** `--json`: one event a line on stdout. */
export const jsonSink = (context: CommandContext) => ({
  write: (event: RunEvent) => void context.stdout.write(`${JSON.stringify(event)}\n`),
});
