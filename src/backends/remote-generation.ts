/** What every server that samples is asked alike, and what is made of its tokens. */
import type { GenerateRequest } from '../contract/sampling.js';
import { BackendError } from '../core/errors.js';

/** The tokens that a response may have. @throws BackendError where the prompt leaves no room for one */
export function responseRoom({ prompt, maxTokens }: GenerateRequest, context: number): number {
  if (prompt.length >= context)
    throw new BackendError(`a prompt of ${prompt.length} tokens leaves no room in a context of ${context}`);
  return Math.min(maxTokens, context - prompt.length);
}

/** The name of a random stream as the one integer that servers take. */
export const seedOf = ({ key }: GenerateRequest) => (key[0] ^ key[1]) >>> 1;

/** The tokens up to the first that stops, and whether one does: not every server stops where it is told to. */
export function upToStop(sampled: readonly number[], { stopTokens }: Pick<GenerateRequest, 'stopTokens'>) {
  const stop = sampled.findIndex((token) => stopTokens.includes(token));
  return { tokens: stop < 0 ? [...sampled] : sampled.slice(0, stop + 1), stopped: stop >= 0 };
}
