import { styleText } from 'node:util';
import type { Secret } from '../../base/host.js';
import { visible } from '../../base/host.js';

/** A terminal, a file or a pipe for lines, and its abilities. */
export interface Screen {
  write(text: string): void;
  /** Columns of a line. */
  readonly width: number;
  /** Whether a line can be overwritten, as in a terminal. */
  readonly live: boolean;
  readonly colour: boolean;
}

export interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** The control sequences that this program itself writes: one return to the start of the line, and the colours. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters
const MEANT = /^\r|\u001b\[(?:1|2|22|31|32|33|39)m/g;

/**
 * The stream, for texts of any origin. Model output, task files, servers and users' code reach a terminal only through
 * it. It writes a dot for each control character that could move the cursor, clear the screen or send commands to the
 * terminal, and `[secret]` for each secret.
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

/** Colours a text if the screen shows colours. The meaning of a text never depends on its colour. */
export function tone(screen: Pick<Screen, 'colour'>, format: Tone, text: string): string {
  return screen.colour ? styleText(format, text, { validateStream: false }) : text;
}
