import { styleText } from 'node:util';

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
