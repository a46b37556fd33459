/** How long prompts are, without a call. */
import type { ModelRequest } from '../../dialects/dialect.js';
import type { EpisodeCalls } from '../attribution.js';

/** Characters of a token, roughly, if the tokenizer is unknown. */
const CHARACTERS_PER_TOKEN = 4;

/** The tokens of a request's prompt. @throws EpisodeOverError; DialectError for a text that the tokenizer has not */
export function promptTokens(calls: EpisodeCalls, agent: string, request: ModelRequest): number {
  const tokens = calls.measure(agent, request);
  if (tokens !== undefined) return tokens;
  const characters = request.messages.reduce((sum, { content }) => sum + content.length, 0);
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}
