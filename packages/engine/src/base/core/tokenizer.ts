import type { Message, Tool } from './message.js';

/** A tokenizer: text to token ids and back. Implementations need no Node, so that they run in a browser too. */
export interface Tokenizer {
  readonly vocabSize: number;
  /** The stop tokens: each of these ids ends a response. */
  readonly stopTokens: readonly number[];
  /** The format of tool calls in its conversations. Undefined if drmas cannot read the format. */
  readonly toolFormat: string | undefined;
  /** @throws TokenizerError when the text cannot be represented. */
  encode(text: string): number[];
  decode(tokens: readonly number[]): string;
  /**
   * Encodes a conversation up to the point at which the model writes. `exact` returns the ids of a message that was
   * sampled before, so that it is not tokenised again. `tools` are the tools that the model may call.
   */
  chat(
    messages: readonly Message[],
    exact?: (message: Message) => readonly number[] | undefined,
    tools?: readonly Tool[],
  ): number[];
  /** A plain description that `createTokenizer` understands, for recipe.json and checkpoints. */
  toJSON(): unknown;
}
