/** Checks of token ids that a program passes, before the engine gets them. */

import type { DecoderConfig } from '../contract/architecture.js';
import { ArgumentError } from '../errors.js';
import type { TokenIds } from './generate-options.js';

type PromptLimits = Pick<DecoderConfig, 'context' | 'vocabSize'>;

/**
 * @param name The name of the list in messages
 * @param least The smallest number of tokens; default 1
 * @throws ArgumentError if the list is too short, too long for the context, or holds an id outside the vocabulary
 */
export function requireTokens(name: string, tokens: TokenIds, { context, vocabSize }: PromptLimits, least = 1): void {
  if (!Array.isArray(tokens) && !(tokens instanceof Int32Array))
    throw new ArgumentError(`${name}: expected a list of token ids, found ${typeof tokens}`);
  if (tokens.length < least) throw new ArgumentError(`${name}: expected at least one token`);
  if (tokens.length > context)
    throw new ArgumentError(`${name}: ${tokens.length} tokens do not fit a context of ${context}`);
  const wrong = tokens.findIndex((token) => !(Number.isInteger(token) && token >= 0 && token < vocabSize));
  if (wrong >= 0)
    throw new ArgumentError(
      `${name}: token ${tokens[wrong]} at position ${wrong} is outside the vocabulary of ${vocabSize}`,
    );
}

/** @throws ArgumentError as `requireTokens`, and if a prompt leaves no room for a response */
export function requireRoom(name: string, prompt: TokenIds, limits: PromptLimits): void {
  requireTokens(name, prompt, limits);
  if (prompt.length >= limits.context)
    throw new ArgumentError(`${name}: ${prompt.length} tokens leave no room in a context of ${limits.context}`);
}
