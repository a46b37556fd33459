import { styleText } from 'node:util';
import { type Secret, visible } from '@drmas/engine/host';
import { columns, leftAligned } from './columns.js';

/** A terminal, a file or a pipe for lines, and its abilities. */
export interface Screen {
  write(text: string): void;
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
      ? Math.min(WIDEST, Math.max(20, (stream.columns || WIDTH_WITHOUT_TERMINAL) - 1))
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

/** The shortest time between progress lines if they cannot be overwritten. */
const SECONDS_BETWEEN_LINES = 10;
/** The shortest time between a passing line and any other line. */
const SECONDS_BETWEEN_PASSING = 0.3;
/** The longest silence if lines cannot be replaced: after it, a passing line is written for good. */
const SECONDS_OF_SILENCE = 15;

const seconds = () => performance.now() / 1000;

/** Permanent lines, and below them one line of progress, which the next one replaces. */
export class StatusLines {
  readonly #screen: Screen;
  #progress = '';
  /** Whether the line of progress stays when a permanent line comes, or is overwritten. */
  #last: 'stays' | 'goes' = 'goes';
  #written = Number.NEGATIVE_INFINITY;
  /** The time of the latest line of any kind. */
  #heard = seconds();

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** Writes permanent lines. Without arguments it only makes room for the output of others. */
  say(...lines: string[]): void {
    const { live, write } = this.#screen;
    const progress = this.#progress;
    this.#progress = '';
    const over = progress !== '' && this.#last === 'goes' && live;
    if (progress !== '' && this.#last === 'stays') write(live ? '\n' : `${progress}\n`);
    if (over && lines.length === 0) {
      write(`\r${' '.repeat(columns(progress))}`);
      write('\r'); // alone: `guardedStream` keeps a return only at the start of a text
    }
    for (const [i, line] of lines.entries())
      write(over && i === 0 ? `\r${leftAligned(line, columns(progress))}\n` : `${line}\n`);
    if (live && lines.length > 0) this.#written = seconds();
    if (lines.length > 0) this.#heard = seconds();
  }

  /**
   * Writes a line that the next one replaces. If lines cannot be replaced, it writes one only from time to time.
   * @param last Whether the line stays when a permanent line comes, or is overwritten
   */
  progress(line: string, last: 'stays' | 'goes'): void {
    const { live, write } = this.#screen;
    if (last !== this.#last) this.say();
    this.#last = last;
    const due = live || seconds() - this.#written >= SECONDS_BETWEEN_LINES;
    if (due) write(live ? `\r${leftAligned(line, columns(this.#progress))}` : `${line}\n`);
    if (due) {
      this.#written = seconds();
      this.#heard = this.#written;
    }
    this.#progress = due && !live ? '' : line;
  }

  /** Writes a line of progress that may be left out: from time to time, or after silence if it stays for good. */
  passing(line: () => string): void {
    const { live } = this.#screen;
    const since = live ? this.#written : this.#heard;
    if (seconds() - since < (live ? SECONDS_BETWEEN_PASSING : SECONDS_OF_SILENCE)) return;
    if (live) this.progress(line(), 'goes');
    else this.say(line());
  }
}
