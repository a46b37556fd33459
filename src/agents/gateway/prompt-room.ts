/** How long prompts are, and what is left of a model's context for the answer. */
import { DialectError, EpisodeOverError, messageOf } from '../../core/errors.js';
import type { ModelRequest } from '../../dialects/dialect.js';
import type { EpisodeCalls } from '../attribution.js';

/** Characters of a token, roughly, where a tokenizer is not known. */
const CHARACTERS_PER_TOKEN = 4;

function measured(calls: EpisodeCalls, agent: string, request: ModelRequest): ReturnType<EpisodeCalls['measure']> {
  try {
    return calls.measure(agent, request);
  } catch (error) {
    if (error instanceof DialectError || error instanceof EpisodeOverError) throw error;
    throw new DialectError(400, 'invalid_request', `${agent} cannot read this: ${messageOf(error)}`);
  }
}

/** The tokens of a request's prompt. @throws EpisodeOverError; DialectError for a text that the tokenizer has not */
export function promptTokens(calls: EpisodeCalls, agent: string, request: ModelRequest): number {
  const known = measured(calls, agent, request);
  if (known !== undefined) return known.tokens;
  const characters = request.messages.reduce((sum, { content }) => sum + content.length, 0);
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

/**
 * The most tokens of an answer, where the context limits them or the client does: clients ask for as many as large
 * models have. The agent's own limit comes on top.
 * @throws DialectError where nothing is left, and for a text that the tokenizer does not have
 */
export function roomFor(calls: EpisodeCalls, agent: string, request: ModelRequest): number | undefined {
  const known = measured(calls, agent, request);
  if (known === undefined || !Number.isFinite(known.context)) return request.maxTokens; // a rehearsal has no context
  const left = known.context - known.tokens;
  if (left >= 1) return Math.min(request.maxTokens ?? left, left);
  const message = `${agent}'s context is ${known.context} tokens, and the messages are ${known.tokens}`;
  throw new DialectError(400, 'context_length_exceeded', message);
}
