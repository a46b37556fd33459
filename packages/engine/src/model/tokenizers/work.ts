/** The work and the texts that a tokenizer.json may take: its patterns and replacements come from a downloaded file. */

/** Units of work for a character of a text, and for any text. The patterns of real models take at most 30 of them. */
const WORK = { character: 500, text: 1_000_000 } as const;
/** Characters that a text may grow to for each of its characters, and any text. NFKC makes at most 18 of one. */
const GROWTH = { character: 32, text: 10_000 } as const;

/** Counts the work for one text: a unit is a step of a pattern or a character that a part of the tokenizer reads. */
export class Work {
  readonly #length: number;
  #left: number;

  /** @param length The characters of the text */
  constructor(length: number) {
    this.#length = length;
    this.#left = WORK.text + WORK.character * length;
  }

  /** @throws Error when the text has used up its work */
  spend(units: number): void {
    this.#left -= units;
    if (!(this.#left >= 0)) throw new Error(`its patterns or vocabulary take too much work for ${this.#text()}`);
  }

  /** Pays for a text before it is made. @throws Error when it is much longer than the text that it comes from */
  text(characters: number): void {
    this.allow(characters);
    this.spend(characters);
  }

  /** @throws Error when a text of this length is much longer than the text that it comes from */
  allow(characters: number): void {
    if (characters > GROWTH.text + GROWTH.character * this.#length)
      throw new Error(`it makes ${characters} or more characters of ${this.#text()}`);
  }

  #text(): string {
    return `a text of ${this.#length} characters`;
  }
}
