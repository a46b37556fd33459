/** The work and the texts that a chat template may take: it is a program from a downloaded file. */

/** Characters that count as one unit of work when a text is made or searched. */
const CHARACTERS_A_UNIT = 64;
/** The largest whole number in bits. Python refuses to print one of more than 4,300 digits. */
const LARGEST_INTEGER = 14_000;

export interface Limits {
  /** Units of work: evaluated expressions, rounds of loops, entries that a filter or a printer visits. */
  readonly work: number;
  /** Characters of one text, and of all output together. */
  readonly characters: number;
}

/** Counts the work of one rendering. Each operation pays before it allocates. */
export class Budget {
  readonly limits: Limits;
  #work: number;

  constructor(limits: Limits) {
    this.limits = limits;
    this.#work = limits.work;
  }

  /** @throws Error when the template has used up its work */
  spend(amount: number): void {
    this.#work -= amount;
    if (!(this.#work >= 0)) throw new Error('it does more than any conversation takes');
  }

  /** Pays for a text of this length. @throws Error when it is longer than texts may be */
  length(characters: number): void {
    if (!(characters <= this.limits.characters))
      throw new Error(`it makes a text of more than ${this.limits.characters} characters`);
    this.spend(characters / CHARACTERS_A_UNIT);
  }

  text(text: string): string {
    this.length(text.length);
    return text;
  }

  /** Pays for a list or a dictionary with this number of entries, and for what each entry costs. */
  entries(count: number): void {
    this.spend(count);
  }

  /** Refuses a whole number of more bits than can be printed. */
  digits(bits: number): void {
    if (!(bits <= LARGEST_INTEGER + 64)) throw new Error('it makes a number of more than 4,000 digits');
    this.spend(bits / CHARACTERS_A_UNIT);
  }

  /** A whole number of a size that can be printed. */
  integer(value: bigint): bigint {
    if (BigInt.asIntN(LARGEST_INTEGER, value) !== value) this.digits(Number.POSITIVE_INFINITY);
    return value;
  }
}
