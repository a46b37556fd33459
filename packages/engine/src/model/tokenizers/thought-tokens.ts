import type { Tokenizer } from '../../nouns.js';
import { endsOfThinking, firstMark, THINKING } from '../tool-formats/thinking.js';
import { TextStream } from './text-stream.js';

const LONGEST = Math.max(...THINKING.map(([, end]) => end.length));

/** The number of tokens of a response up to the end of its thinking: all of them if the thinking does not end. */
export function thoughtTokens(
  tokenizer: Pick<Tokenizer, 'decode' | 'stopTokens'>,
  response: readonly number[],
): number {
  const stream = new TextStream(tokenizer);
  let [beginning, end] = ['', '']; // the whole text would be copied for each token
  const last = response.findIndex((token) => {
    const piece = stream.push([token]);
    if (beginning.length < LONGEST) beginning = (beginning + piece).trimStart();
    end = end.slice(-LONGEST) + piece;
    return firstMark(end, endsOfThinking(beginning)) !== undefined;
  });
  return last < 0 ? response.length : last + 1;
}
