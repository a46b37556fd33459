import type { Screen } from './screen.js';

/** Lines of progress that cannot be written over come at most this often. */
const SECONDS_BETWEEN_LINES = 10;
/** Passing lines come at most this often, and not before so long after any other line. */
const SECONDS_BETWEEN_PASSING = 0.3;

/** Lines that stay, and below them one of progress, which the next one replaces. */
export class StatusLines {
  readonly #screen: Screen;
  #progress = '';
  /** Whether the line of progress stays when a line that stays comes, or makes room for it. */
  #last: 'stays' | 'goes' = 'goes';
  #written = Number.NEGATIVE_INFINITY;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** Writes lines that stay. Without any it only makes room for what others write. */
  say(...lines: string[]): void {
    const { live, write } = this.#screen;
    const progress = this.#progress;
    this.#progress = '';
    const over = progress !== '' && this.#last === 'goes' && live;
    if (progress !== '' && this.#last === 'stays') write(live ? '\n' : `${progress}\n`);
    if (over && lines.length === 0) {
      write(`\r${' '.repeat(progress.length)}`);
      write('\r'); // by itself: a terminal is only let return at the beginning of a text
    }
    for (const [i, line] of lines.entries())
      write(over && i === 0 ? `\r${line.padEnd(progress.length)}\n` : `${line}\n`);
    if (live && lines.length > 0) this.#written = seconds();
  }

  /**
   * Writes a line that the next one replaces; where lines cannot be replaced, one now and then.
   * @param last Whether it stays when a line that stays comes, or makes room for it
   */
  progress(line: string, last: 'stays' | 'goes'): void {
    const { live, write } = this.#screen;
    if (last !== this.#last) this.say();
    this.#last = last;
    const due = live || seconds() - this.#written >= SECONDS_BETWEEN_LINES;
    if (due) write(live ? `\r${line.padEnd(this.#progress.length)}` : `${line}\n`);
    if (due) this.#written = seconds();
    this.#progress = due && !live ? '' : line;
  }

  /** Writes a line of progress that may be missed: now and then, and only where it can be written over. */
  passing(line: () => string): void {
    if (!this.#screen.live || seconds() - this.#written < SECONDS_BETWEEN_PASSING) return;
    this.progress(line(), 'goes');
  }
}

const seconds = () => performance.now() / 1000;
