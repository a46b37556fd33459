import type { Message } from './message.js';

/** Text to token ids and back. Implementations need no Node, so that they run in a browser too. */
export interface Tokenizer {
  readonly vocabSize: number;
  /** Ends a response. */
  readonly stopTokens: readonly number[];
  /** @throws TokenizerError when the text cannot be represented. */
  encode(text: string): number[];
  decode(tokens: readonly number[]): string;
  /**
   * A conversation as token ids, ending where the model is to write. `exact` gives the ids of a message's content where
   * they are known (a response that was sampled before), so that they are never tokenised again.
   */
  chat(messages: readonly Message[], exact?: (message: Message) => readonly number[] | undefined): number[];
  /** A plain description that `createTokenizer` understands, for recipe.json and checkpoints. */
  toJSON(): unknown;
}
