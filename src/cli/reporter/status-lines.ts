import type { Screen } from './screen.js';

/** Lines of progress that cannot be written over come at most this often. */
const SECONDS_BETWEEN_LINES = 10;

/** Lines that stay, and below them one of progress, which the next one replaces. */
export class StatusLines {
  readonly #screen: Screen;
  readonly #last: 'stays' | 'goes';
  #progress = '';
  #written = Number.NEGATIVE_INFINITY;

  /** @param last Whether the last line of progress stays when a line that stays comes, or makes room for it */
  constructor(screen: Screen, last: 'stays' | 'goes') {
    this.#screen = screen;
    this.#last = last;
  }

  /** Writes lines that stay. */
  say(...lines: string[]): void {
    const { live, write } = this.#screen;
    const progress = this.#progress;
    this.#progress = '';
    if (progress !== '' && this.#last === 'stays') write(live ? '\n' : `${progress}\n`);
    const over = progress !== '' && this.#last === 'goes' && live;
    for (const [i, line] of lines.entries())
      write(over && i === 0 ? `\r${line.padEnd(progress.length)}\n` : `${line}\n`);
  }

  /** Writes a line that the next one replaces; where lines cannot be replaced, one now and then. */
  progress(line: string): void {
    const { live, write } = this.#screen;
    const now = performance.now() / 1000;
    if (live) write(`\r${line.padEnd(this.#progress.length)}`);
    this.#progress = line;
    if (live || now - this.#written < SECONDS_BETWEEN_LINES) return;
    this.#written = now;
    this.#progress = '';
    write(`${line}\n`);
  }
}
