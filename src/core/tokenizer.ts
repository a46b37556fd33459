import type { Message, Tool } from './message.js';

/** A tokenizer: text to token ids and back. Implementations need no Node, so that they run in a browser too. */
export interface Tokenizer {
  readonly vocabSize: number;
  /** The ids of which each ends a response. */
  readonly stopTokens: readonly number[];
  /** The format in which its conversations have calls of tools; undefined where it is none that can be read. */
  readonly toolFormat: string | undefined;
  /** @throws TokenizerError when the text cannot be represented. */
  encode(text: string): number[];
  decode(tokens: readonly number[]): string;
  /**
   * Encodes a conversation, ending where the model is to write. `exact` returns the ids of a message that was sampled
   * before, so that it is never tokenised again; `tools` are those that the model may call.
   */
  chat(
    messages: readonly Message[],
    exact?: (message: Message) => readonly number[] | undefined,
    tools?: readonly Tool[],
  ): number[];
  /** A plain description that `createTokenizer` understands, for recipe.json and checkpoints. */
  toJSON(): unknown;
}
