const [WORKING, STATE, LENGTH, TEXT] = [0, 1, 2, 3];
const [NOTHING, BEING_WRITTEN, WRITTEN] = [0, 1, 2];
const MOST_TEXT = 500;

/** Shared words of all threads of one set of kernels: the number of working threads, and the error of one thread. */
export class Board {
  /** The number of words that a board needs, which are zero at first. */
  static readonly LENGTH = TEXT + MOST_TEXT;
  readonly #words: Int32Array;

  constructor(words: Int32Array) {
    this.#words = words;
  }

  get working(): number {
    return Atomics.load(this.#words, WORKING);
  }

  arrive(): void {
    Atomics.add(this.#words, WORKING, 1);
  }

  /** Reports a failure. Of several the first is kept until it is read. */
  fail(message: string): void {
    if (Atomics.compareExchange(this.#words, STATE, NOTHING, BEING_WRITTEN) !== NOTHING) return;
    const text = message.slice(0, MOST_TEXT);
    for (let i = 0; i < text.length; i++) this.#words[TEXT + i] = text.charCodeAt(i);
    this.#words[LENGTH] = text.length;
    Atomics.store(this.#words, STATE, WRITTEN);
  }

  /** Returns the failure since the last call, if there was one, and clears it. */
  takeFailure(): string | undefined {
    if (Atomics.load(this.#words, STATE) !== WRITTEN) return undefined;
    const text = String.fromCharCode(...this.#words.subarray(TEXT, TEXT + (this.#words[LENGTH] ?? 0)));
    Atomics.store(this.#words, STATE, NOTHING);
    return text;
  }
}
