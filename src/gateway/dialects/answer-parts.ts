/** Parts that the answers of several dialects share. */
import { BackendError, type DialectError } from '@drmas/engine/errors';
import type { ModelAnswer, ModelDelta } from './dialect.js';

/**
 * The deltas without gaps: a beginning, then before the end the reasoning and text that no delta contained, then the
 * whole answer.
 * @throws BackendError if the deltas end without an answer
 */
export async function* wholeDeltas(deltas: AsyncIterable<ModelDelta>): AsyncIterable<ModelDelta> {
  let begun = false;
  const sent = { text: '', reasoning: '' };
  for await (const delta of deltas) {
    if (delta.type === 'begin') begun = true;
    else if (delta.type !== 'answer') sent[delta.type] += delta.text;
    else {
      const { id, usage, content, reasoning = '' } = delta.answer;
      if (!begun) yield { type: 'begin', id, promptTokens: usage.promptTokens };
      if (rest(reasoning, sent.reasoning) !== '') yield { type: 'reasoning', text: rest(reasoning, sent.reasoning) };
      if (rest(content, sent.text) !== '') yield { type: 'text', text: rest(content, sent.text) };
      yield delta;
      return;
    }
    yield delta;
  }
  throw unanswered();
}

/** @throws BackendError when the deltas end without an answer */
export async function wholeAnswer(deltas: AsyncIterable<ModelDelta>): Promise<ModelAnswer> {
  for await (const delta of deltas) if (delta.type === 'answer') return delta.answer;
  throw unanswered();
}

const unanswered = () => new BackendError('the stream of an answer ended without the answer');

const rest = (whole: string, sent: string) => (whole.startsWith(sent) ? whole.slice(sent.length) : '');

export const epochSeconds = () => Math.floor(Date.now() / 1000);

/** The `type` of an error in the dialects of OpenAI, by its status. */
const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};

export function openAiError({ status, code, message, field }: DialectError) {
  const type = ERROR_TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  return { error: { message, type, param: field ?? null, code } };
}
