/** Checks of the ids and log-probs that a server answers, before they become a turn or reach weights. */

import { type GenerateRequest, responseRoom } from '../contract/sampling.js';
import { BackendError } from '../errors.js';
import { upToStop } from './agent-reply.js';

/** A sampled response as the server wrote it: any JSON. */
export interface AnsweredTokens {
  readonly tokens: readonly unknown[]; // [R]
  readonly logprobs: readonly unknown[]; // [R]
}

/** The server of an answer, and the places of its numbers, for messages. */
export interface AnswerSource {
  /** The server and its address. */
  readonly server: string;
  /** The policy that it sampled. */
  readonly policy: string;
  /** The path of token `t` in the reply. */
  tokenField(t: number): string;
  /** The path of the log-prob of token `t` in the reply. */
  logprobField(t: number): string;
}

/** The limits of the model's sequences. */
export interface SequenceLimits {
  readonly vocabSize: number;
  /** Longest sequence in tokens. */
  readonly context: number;
}

/** Rounding may make the log-prob of a certain token exceed 0 by this much. */
const MOST_ABOVE_CERTAIN = 0.01;

/** The fault of a value that should be a token id below `vocabSize`; undefined if it has none. */
export function idFault(value: unknown, vocabSize: number): string | undefined {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < vocabSize) return undefined;
  return `${shown(value)}, expected a token id of 0 to ${vocabSize - 1}`;
}

/** The fault of a value that should be a log-prob: a finite 32-bit number, at most 0 within rounding. */
export function logprobFault(value: unknown): string | undefined {
  if (typeof value !== 'number' || !Number.isFinite(Math.fround(value)))
    return `${shown(value)}, expected a finite number of at most 0`;
  return value <= MOST_ABOVE_CERTAIN ? undefined : `${shown(value)}, expected at most 0`;
}

/** A wrong value in a message. It may be as long as the server likes. */
function shown(value: unknown): string {
  if (typeof value === 'number' || value === undefined) return String(value);
  const text = JSON.stringify(value);
  return text.length <= 40 ? text : `${text.slice(0, 40)}...`;
}

/**
 * The tokens up to the first stop token, with their log-probs.
 * @throws BackendError naming server, policy, field and value: for no tokens or more than the request allows, ids
 *   outside the vocabulary, another number of log-probs, and log-probs that are not finite or above 0
 */
export function checkedAnswer(
  { tokens, logprobs }: AnsweredTokens,
  request: GenerateRequest,
  { vocabSize, context }: SequenceLimits,
  source: AnswerSource,
): { readonly tokens: number[]; readonly logprobs: number[]; readonly stopped: boolean } {
  const refuse = (fault: string) => new BackendError(`policy '${source.policy}' on ${source.server}: ${fault}`);
  const counts = `${tokens.length} token${tokens.length === 1 ? '' : 's'}`;
  if (tokens.length === 0) throw refuse('the answer has 0 tokens, expected at least 1');
  if (logprobs.length !== tokens.length)
    throw refuse(`the answer has ${logprobs.length} log-probs of ${counts}, expected ${tokens.length}`);
  for (const [t, token] of tokens.entries()) {
    const fault = idFault(token, vocabSize);
    if (fault !== undefined) throw refuse(`${source.tokenField(t)} is ${fault}`);
  }
  const room = responseRoom(request, context);
  const sampled = upToStop(tokens as readonly number[], request);
  if (sampled.tokens.length > room) throw refuse(`the answer has ${counts}, expected at most ${room}`);
  const kept = logprobs.slice(0, sampled.tokens.length);
  for (const [t, logprob] of kept.entries()) {
    const fault = logprobFault(logprob);
    if (fault !== undefined) throw refuse(`${source.logprobField(t)} is ${fault}`);
  }
  return { ...sampled, logprobs: kept as number[] };
}
