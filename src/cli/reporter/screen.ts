import { styleText } from 'node:util';
import { visible } from '../../core/format.js';
import type { Secret } from '../../core/secret.js';

/** A terminal, a file or a pipe that lines are written to, and what it can do. */
export interface Screen {
  write(text: string): void;
  /** Columns of a line. */
  readonly width: number;
  /** Whether a line can be written over, as in a terminal. */
  readonly live: boolean;
  readonly colour: boolean;
}

export interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** All that this program itself writes to move or colour: one return to the line's beginning, and the tones. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const MEANT = /^\r|\u001b\[(?:1|2|22|31|32|33|39)m/g;

/**
 * The stream, for texts of any origin: model output, task files, servers and users' code reach a terminal only through
 * here. A dot stands for each control character that could move the cursor, clear the screen or give the terminal
 * commands, and `[secret]` for each of the secrets.
 */
export function guardedStream(stream: Stream, secrets: readonly Secret[]): Stream {
  return {
    write(text) {
      const masked = secrets.reduce((rest, secret) => secret.mask(rest), text);
      const meant = masked.match(MEANT) ?? [];
      const parts = masked.split(MEANT).map(visible);
      return stream.write(parts.map((part, i) => part + (meant[i] ?? '')).join(''));
    },
    get isTTY() {
      return stream.isTTY;
    },
    get columns() {
      return stream.columns;
    },
  };
}

/** The widest line that is easy to read, in columns. */
const WIDEST = 100;
const WIDTH_WITHOUT_TERMINAL = 80;

/** The screen behind a stream. It respects NO_COLOR (no-color.org) and TERM=dumb. */
export function screenOf(stream: Stream, environment: NodeJS.ProcessEnv): Screen {
  const live = stream.isTTY === true && environment.TERM !== 'dumb';
  return {
    write: (text) => void stream.write(text),
    width: live
      ? Math.min(WIDEST, Math.max(20, (stream.columns ?? WIDTH_WITHOUT_TERMINAL) - 1))
      : WIDTH_WITHOUT_TERMINAL,
    live,
    colour: live && !environment.NO_COLOR,
  };
}

type Tone = 'bold' | 'dim' | 'green' | 'red' | 'yellow';

/** Colours a text where the screen shows colours. The meaning of a text never depends on its colour. */
export function tone(screen: Pick<Screen, 'colour'>, format: Tone, text: string): string {
  return screen.colour ? styleText(format, text, { validateStream: false }) : text;
}
