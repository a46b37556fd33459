/** A text that is used but never shown: printing it, writing it to JSON and copying it give nothing away. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toJSON(): undefined {
    return undefined;
  }

  toString(): string {
    return '[secret]';
  }
}
