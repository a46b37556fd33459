import type { Readable, Writable } from 'node:stream';
import type { RunEvent } from '../core/events.js';
import type { Host } from '../core/host.js';
import type { Stream } from './reporter/screen.js';
import type { Work } from './wiring.js';

/** Where lines come from; a terminal also has what they are edited on. */
export interface Keyboard {
  readonly input: Readable & { readonly isTTY?: boolean | undefined };
  readonly output: Writable;
}

/** The surroundings of a command: its streams, its environment and the work that it may call. */
export interface CommandContext {
  readonly stdout: Stream;
  readonly stderr: Stream;
  /** What a person types, or a program sends. A command that reads nothing must not ask for it. */
  readonly stdin: () => Keyboard;
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

/** Says that a command was interrupted which leaves nothing to go on with. Returns the exit code. */
export function interruptedForGood({ stderr }: Pick<CommandContext, 'stderr'>): number {
  stderr.write('interrupted; nothing is kept: type the same command again\n');
  return INTERRUPTED;
}

/** The sink of `--json`: it writes one event a line to stdout. */
export const jsonSink = (context: CommandContext) => ({
  write: (event: RunEvent) => void context.stdout.write(`${jsonText(event)}\n`),
});

/** A value as JSON on one line. What a terminal might take for a command is escaped, and so stays in the value. */
export const jsonText = (value: unknown) => JSON.stringify(value).replaceAll(/[\u007f-\u009f\u2028\u2029]/g, escaped);

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
