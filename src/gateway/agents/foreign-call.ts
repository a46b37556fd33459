/** How a foreign call of a model becomes a call of an agent. */
import { given } from '@drmas/engine/errors';
import { promptTokens, responseTokens, type Turn } from '@drmas/engine/nouns';
import type { Ask, AskOptions } from '../../teams/index.js';
import type { EpisodeInPlay, ForeignAskOptions, TokenCounts } from '../../teams/rollout.js';
import type { AnswerUsage, ModelAnswer, ModelRequest, Said } from '../dialects/dialect.js';

export const askOptions = ({ tools, toolChoice, maxTokens, responseSchema }: ModelRequest): AskOptions =>
  given({ tools, toolChoice, maxTokens, responseSchema });

/**
 * Calls an agent for a request. Rejects as the agent does, with a DialectError for messages that do not fit its
 * context, and with the signal's reason once that fires.
 */
export async function foreignCall(
  episode: EpisodeInPlay,
  ask: Ask,
  counts: TokenCounts,
  request: ModelRequest,
  signal: AbortSignal | undefined,
): Promise<ModelAnswer> {
  let probed: Turn | undefined;
  const probe = (turn: Turn) => {
    probed = turn;
  };
  const options: ForeignAskOptions = {
    ...askOptions(request),
    signal,
    ignored: request.ignored,
    foreign: true,
    ...(request.probe === true ? { probe } : {}),
  };
  const { id, content, reasoning, toolCalls, finishReason } = await ask(request.messages, options);
  const turn = probed ?? episode.turns.find((each) => each.id === id);
  return {
    id,
    model: request.model,
    content,
    toolCalls,
    ...given({ reasoning }),
    finishReason: toolCalls.length > 0 ? 'tool_calls' : finishReason,
    usage: turn === undefined ? { promptTokens: 0, responseTokens: 0 } : usageOf(turn, counts),
    ...(turn === undefined || turn.endpoint !== undefined || !request.wantsTokenIds ? {} : { tokens: idsOf(turn) }),
  };
}

export function recalled({ turns }: EpisodeInPlay, id: string): Said | undefined {
  const turn = turns.find((each) => each.id === id);
  return turn && { id, content: turn.content ?? turn.text, toolCalls: turn.toolCalls ?? [] };
}

const idsOf = ({ prompt, response, logprobs }: Turn) => ({ prompt, response, logprobs });

function usageOf(turn: Turn, counts: TokenCounts): AnswerUsage {
  const reasoningTokens = counts.ofThinking(turn);
  return {
    promptTokens: promptTokens(turn) ?? 0,
    responseTokens: responseTokens(turn) ?? 0,
    ...given({ reasoningTokens }),
  };
}
