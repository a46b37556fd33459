import type { Readable, Writable } from 'node:stream';
import type { RunEvent } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import type { RunPlace } from '../runs/index.js';
import type { forecastRun } from '../runs/studies.js';
import type { openDashboard } from './open-dashboard.js';
import type { Stream } from './reporter/screen.js';

/** The source of typed lines, and the terminal on which a person edits them. */
export interface Keyboard {
  readonly input: Readable & { readonly isTTY?: boolean | undefined };
  readonly output: Writable;
}

/** The surroundings of a command: its streams, its environment and the functions that only tests replace. */
export interface CommandContext {
  readonly stdout: Stream;
  readonly stderr: Stream;
  /** The input of a person or a program. A command that reads nothing must not call it. */
  readonly stdin: () => Keyboard;
  readonly environment: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** Does work that an interruption must not stop. */
  readonly protect: Host['protect'];
  /** This process, or a cluster. */
  readonly place: RunPlace;
  readonly forecastRun: typeof forecastRun;
  readonly openDashboard: typeof openDashboard;
}

/**
 * The exit code of an interrupted run. The others: 0 done, 1 the run failed, 2 the request was wrong
 * (`DrmasError.exitCode`).
 */
export const INTERRUPTED = 130;

/** Prints that an interrupted command cannot be resumed. Returns the exit code. */
export function interruptedForGood({ stderr }: Pick<CommandContext, 'stderr'>): number {
  stderr.write('interrupted; the command stored nothing, start it again\n');
  return INTERRUPTED;
}

/** The sink of `--json`: it writes one event a line to stdout. */
export const jsonSink = (context: CommandContext) => ({
  write: (event: RunEvent) => void context.stdout.write(`${jsonText(event)}\n`),
});

/** A value as JSON on one line, with escaped control characters. */
export const jsonText = (value: unknown) => JSON.stringify(value).replaceAll(/[\u007f-\u009f\u2028\u2029]/g, escaped);

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
