import type { Screen } from './screen.js';

/** The shortest time between progress lines if they cannot be overwritten. */
const SECONDS_BETWEEN_LINES = 10;
/** The shortest time between a passing line and any other line. */
const SECONDS_BETWEEN_PASSING = 0.3;
/** The longest silence if lines cannot be replaced: after it, a passing line is written for good. */
const SECONDS_OF_SILENCE = 30;

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
      write(`\r${' '.repeat(progress.length)}`);
      write('\r'); // alone: `guardedStream` keeps a return only at the start of a text
    }
    for (const [i, line] of lines.entries())
      write(over && i === 0 ? `\r${line.padEnd(progress.length)}\n` : `${line}\n`);
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
    if (due) write(live ? `\r${line.padEnd(this.#progress.length)}` : `${line}\n`);
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
