import { styleText } from 'node:util';

/** Where a report goes, and what can be done there. */
export interface Screen {
  write(text: string): void;
  /** Columns of a line. */
  readonly width: number;
  /** A terminal: a line can be written over. */
  readonly live: boolean;
  readonly colour: boolean;
}

export interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Lines longer than this are hard to read. */
const WIDEST = 100;
const WIDTH_WITHOUT_TERMINAL = 80;

/** NO_COLOR (no-color.org) and TERM=dumb are respected. */
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

/** Colours a text where the screen shows colours; meaning never depends on it. */
export function tone(screen: Pick<Screen, 'colour'>, format: Tone, text: string): string {
  return screen.colour ? styleText(format, text, { validateStream: false }) : text;
}
