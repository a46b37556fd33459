/** What stands where a secret was. */
const MASK = '[secret]';

/** A shorter text may stand in any answer by chance, and masking it would garble what is no secret. */
const SHORTEST_MASKED = 8;

/** A text that is used but never shown: printing it, writing it to JSON and copying it give nothing away. */
export class Secret {
  readonly #text: string;
  readonly #pattern: RegExp | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#pattern = text.length < SHORTEST_MASKED ? undefined : anySpelling(text);
  }

  reveal(): string {
    return this.#text;
  }

  /**
   * The text with `[secret]` wherever this secret stands in it, also as JSON spells it with escapes. What a server says
   * passes through here, because servers repeat what they were sent. Secrets of fewer than 8 characters stay.
   */
  mask(text: string): string {
    return this.#pattern === undefined ? text : text.replace(this.#pattern, MASK);
  }

  toJSON(): undefined {
    return undefined;
  }

  toString(): string {
    return MASK;
  }
}

/** Matches a text and every JSON spelling of it: each character as it is, escaped by its number, or by a backslash. */
function anySpelling(text: string): RegExp {
  const units = Array.from({ length: text.length }, (_, i) => {
    const plain = `\\u${hex(text, i)}`; // the expression's escape: this very character
    return `(?:${plain}|\\\\${plain}|\\\\u${[...hex(text, i)].map(eitherCase).join('')})`;
  });
  return new RegExp(units.join(''), 'g');
}

const hex = (text: string, at: number) => text.charCodeAt(at).toString(16).padStart(4, '0');
const eitherCase = (digit: string) => (/[a-f]/.test(digit) ? `[${digit}${digit.toUpperCase()}]` : digit);
