import { z } from 'zod';
import { isObject, issuesText, TokenizerError } from '../../errors.js';

const jsonObject = z.custom<Readonly<Record<string, unknown>>>(isObject, 'expected an object');

/**
 * The tokenizers that a recipe can describe: `symbols`, a fixed vocabulary of strings, for small models on generated
 * tasks (a token's id is its position); `bytes`, UTF-8 bytes and five markers, for any text.
 */
export const ownTokenizerSpec = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('symbols'),
    symbols: z
      .array(z.string().min(1))
      .min(1)
      .readonly()
      .describe('The vocabulary: the id of a token is its position in this list.'),
    stop: z.string().describe('The symbol that ends a response.'),
    endOfUser: z.string().describe("The symbol that is put after a user's message."),
    endOfAssistant: z.string().describe("The symbol that is put after an assistant's message."),
  }),
  z.strictObject({ type: z.literal('bytes') }),
]);

/**
 * All tokenizers. `choices` has the names of a table of choices. `huggingface` holds the contents of a directory's
 * tokenizer.json and tokenizer_config.json; their inside is not validated here, since the library that reads them
 * reports errors itself.
 */
const tokenizerSpec = z.discriminatedUnion('type', [
  ...ownTokenizerSpec.options,
  z.strictObject({
    type: z.literal('choices'),
    choices: z.array(z.string()).readonly(),
    features: z.array(z.string()).readonly(),
  }),
  z.strictObject({
    type: z.literal('huggingface'),
    tokenizer: jsonObject,
    config: jsonObject,
    /** The text of chat_template.jinja; by default the template in `config` is used. */
    chatTemplate: z.string().optional(),
    /** The model's end-of-sequence ids, besides the tokenizer's `eos_token`. */
    stopTokens: z.array(z.int().nonnegative()).readonly().optional(),
    /**
     * The rows of the model's embedding, if the tokenizer has special tokens beyond them, as Gemma 3's has one for
     * images. A text with such a token is refused.
     */
    rows: z.int().positive().optional(),
    /** Further variables for the chat template, such as `enable_thinking`. */
    variables: jsonObject.optional(),
  }),
]);

/** A fixed vocabulary of strings, for small models on generated tasks. */
export interface SymbolsSpec {
  readonly type: 'symbols';
  /** The vocabulary: the id of a token is its position in this list. */
  readonly symbols: readonly string[];
  /** The symbol that ends a response. */
  readonly stop: string;
  /** The symbol that is put after a user's message. */
  readonly endOfUser: string;
  /** The symbol that is put after an assistant's message. */
  readonly endOfAssistant: string;
}

/** UTF-8 bytes and five markers, for any text. */
export interface BytesSpec {
  readonly type: 'bytes';
}

export type HuggingFaceSpec = Extract<z.infer<typeof tokenizerSpec>, { type: 'huggingface' }>;

export type ChoicesSpec = Extract<z.infer<typeof tokenizerSpec>, { type: 'choices' }>;

/** A language model's tokenizer as plain data, for its directory. */
export type TextTokenizerSpec = SymbolsSpec | BytesSpec | HuggingFaceSpec;

/** A tokenizer as plain data, for recipe.json and checkpoints. */
export type TokenizerSpec = TextTokenizerSpec | ChoicesSpec;

/** Validates a tokenizer's description. @throws TokenizerError naming each wrong key and its expected value */
export function parseTokenizerSpec(value: unknown): TokenizerSpec {
  const parsed = tokenizerSpec.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => ({ path: ['tokenizer', ...path], message }));
  throw new TokenizerError(issuesText(issues));
}

/** The same of a language model. @throws TokenizerError for the names of a table of choices too */
export function parseTextTokenizerSpec(value: unknown): TextTokenizerSpec {
  const spec = parseTokenizerSpec(value);
  if (spec.type === 'choices') throw new TokenizerError('tokenizer: a table of choices reads and writes no text');
  return spec;
}
