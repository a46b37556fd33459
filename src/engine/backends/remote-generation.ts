/** The parts of a sampling request that are equal for all servers. */

import { BackendError } from '../../base/errors.js';
import { type GenerateRequest, isGreedy } from '../contract/sampling.js';

/** The most tokens that a response may have. @throws BackendError if the prompt fills the context */
export function responseRoom({ prompt, maxTokens }: GenerateRequest, context: number): number {
  if (prompt.length >= context)
    throw new BackendError(`a prompt of ${prompt.length} tokens leaves no room in a context of ${context}`);
  return Math.min(maxTokens, context - prompt.length);
}

/** The name of a random stream as the one integer that servers take. */
export const seedOf = ({ key }: GenerateRequest) => (key[0] ^ key[1]) >>> 1;

/** The temperature to send: servers differ in the smallest one that they sample at, and all take 0 as greedy. */
export const temperatureOf = ({ temperature }: Pick<GenerateRequest, 'temperature'>) =>
  isGreedy(temperature) ? 0 : temperature;

/** The tokens up to the first stop token, and whether there is one. Some servers continue to sample after it. */
export function upToStop(sampled: readonly number[], { stopTokens }: Pick<GenerateRequest, 'stopTokens'>) {
  const stop = sampled.findIndex((token) => stopTokens.includes(token));
  return { tokens: stop < 0 ? [...sampled] : sampled.slice(0, stop + 1), stopped: stop >= 0 };
}
