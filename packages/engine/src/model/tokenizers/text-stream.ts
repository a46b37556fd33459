import type { Tokenizer } from '../../nouns.js';

/** The character that decoders write for bytes that are no character yet. */
const INCOMPLETE = '\ufffd';
/** More tokens than a character takes: bytes that go on for so long are wrong, and waiting makes each token dearer. */
const TOO_MANY = 16;

/**
 * The text of tokens that come one after another. A character may take several tokens, and a decoder may write a token
 * differently at the beginning of a text, so tokens are decoded together with the tokens of the piece before.
 */
export class TextStream {
  readonly #tokenizer: Pick<Tokenizer, 'decode' | 'stopTokens'>;
  readonly #tokens: number[] = [];
  /** The tokens of the last piece, and the tokens after it. */
  #before: readonly number[] = [];
  #since: number[] = [];

  constructor(tokenizer: Pick<Tokenizer, 'decode' | 'stopTokens'>) {
    this.#tokenizer = tokenizer;
  }

  /** The text that the tokens add as far as it is certain; a token that ends a text adds none. */
  push(tokens: readonly number[]): string {
    for (const token of tokens) {
      if (this.#tokenizer.stopTokens.includes(token)) continue;
      this.#tokens.push(token);
      this.#since.push(token);
    }
    const added = this.#added();
    const waits = added.endsWith(INCOMPLETE) && this.#since.length < TOO_MANY;
    return waits ? '' : this.#give(added);
  }

  /** The rest of the text once no token comes any more. */
  end(): string {
    return this.#give(this.#added());
  }

  /** The text of all tokens so far. */
  get text(): string {
    return this.#tokenizer.decode(this.#tokens);
  }

  /**
   * The text of the tokens after the last piece. Decoders of single bytes write a whole run of bytes otherwise if one
   * of them is wrong, also characters that were given already. The tokens are then decoded alone.
   */
  #added(): string {
    const before = this.#tokenizer.decode(this.#before);
    const now = this.#tokenizer.decode([...this.#before, ...this.#since]);
    return now.startsWith(before) ? now.slice(before.length) : this.#tokenizer.decode(this.#since);
  }

  /** A model may sample tokens without a text, such as ids beyond its vocabulary, without an end. */
  #give(piece: string): string {
    if (piece !== '') this.#before = this.#since;
    if (piece !== '' || this.#since.length >= TOO_MANY) this.#since = [];
    return piece;
  }
}
