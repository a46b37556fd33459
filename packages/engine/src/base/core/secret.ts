/** The text that replaces a secret. */
const MASK = '[secret]';

/** A shorter secret may occur in any text by chance, so masking it would garble other text. */
const SHORTEST_MASKED = 8;

/** A text that is used but never shown: printing it, writing it to JSON and copying it give nothing away. */
export class Secret {
  readonly #text: string;
  readonly #pattern: RegExp | undefined;

  /** @param text White space around it, such as a file's last newline, is no part of it: headers drop it too. */
  constructor(text: string) {
    this.#text = text.trim();
    // A server may repeat it without the scheme.
    const key = /^(?:Bearer|Basic) +(\S{8,})$/i.exec(this.#text)?.[1] ?? this.#text;
    this.#pattern = key.length < SHORTEST_MASKED ? undefined : anySpelling(key);
  }

  reveal(): string {
    return this.#text;
  }

  /**
   * Replaces each occurrence of this secret in the text by `[secret]`, also if JSON escapes spell it. Replies of
   * servers pass through here, because servers repeat what they were sent. Secrets of fewer than 8 characters stay.
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
