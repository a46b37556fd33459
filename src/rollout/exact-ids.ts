import type { FinishReason, Turn } from '../core/episode.js';
import type { Message } from '../core/message.js';
import type { Tokenizer } from '../core/tokenizer.js';

/** What was said, without the stop token that ended it. */
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
 * The sampled ids of an assistant message that repeats an earlier reply of the episode word for word, so that the reply is
 * read as it was written and never tokenised again. The latest such reply counts; ids of another vocabulary do not.
 */
export function exactIds(
  turns: readonly Turn[],
  tokenizerOf: (turn: Turn) => Tokenizer | undefined,
  tokenizer: Tokenizer,
): (message: Message) => readonly number[] | undefined {
  return ({ role, content }) => {
    if (role !== 'assistant') return undefined;
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
