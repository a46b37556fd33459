import type { Tokenizer } from '../../nouns.js';
import { THOUGHT } from '../tool-formats/thinking.js';
import { TextStream } from './text-stream.js';

/** The number of tokens of a response up to the end of its thinking: all of them if the thinking does not end. */
export function thoughtTokens(
  tokenizer: Pick<Tokenizer, 'decode' | 'stopTokens'>,
  response: readonly number[],
): number {
  const stream = new TextStream(tokenizer);
  let text = '';
  const last = response.findIndex((token) => {
    const from = Math.max(0, text.length - THOUGHT.length);
    text += stream.push([token]);
    return text.includes(THOUGHT, from);
  });
  return last < 0 ? response.length : last + 1;
}
