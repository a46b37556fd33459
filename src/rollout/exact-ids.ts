import type { FinishReason, Turn } from '../core/episode.js';
import type { Message } from '../core/message.js';
import type { Tokenizer } from '../core/tokenizer.js';

/** The response's ids without the stop token at their end. */
export function withoutStop(
  tokens: readonly number[],
  finishReason: FinishReason,
  { stopTokens }: Tokenizer,
): readonly number[] {
  const last = tokens.at(-1);
  const stopped = finishReason === 'stop' && last !== undefined && stopTokens.includes(last);
  return stopped ? tokens.slice(0, -1) : tokens;
}

/**
 * Looks up the sampled ids of an assistant message that repeats an earlier reply of the episode word for word, so that
 * models read the reply with the ids it was sampled with and it is never tokenised again. The latest such reply of a
 * policy with an equal tokenizer counts.
 */
export function exactIds(
  turns: readonly Turn[],
  tokenizerOf: (turn: Turn) => Tokenizer | undefined,
  tokenizer: Tokenizer,
): (message: Message) => readonly number[] | undefined {
  return ({ role, content, toolCalls = [] }) => {
    if (role !== 'assistant' || toolCalls.length > 0) return undefined;
    const turn = turns.findLast((turn) => turn.text === content && same(tokenizerOf(turn), tokenizer));
    return turn && withoutStop(turn.response, turn.finishReason, tokenizer);
  };
}

const descriptions = new WeakMap<Tokenizer, string>();

function same(a: Tokenizer | undefined, b: Tokenizer): boolean {
  return a === b || (a !== undefined && describe(a) === describe(b));
}

function describe(tokenizer: Tokenizer): string {
  const description = descriptions.get(tokenizer) ?? JSON.stringify(tokenizer.toJSON());
  descriptions.set(tokenizer, description);
  return description;
}
