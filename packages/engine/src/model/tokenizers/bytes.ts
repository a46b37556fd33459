import type { Tokenizer } from '../../nouns.js';
import { plainMessages } from '../tool-formats/plain-messages.js';
import { REPLACEMENT } from './symbols.js';
import { requireWellFormed } from './well-formed.js';

/** The number of bytes, which are the first ids. */
export const BYTES = 256;
/**
 * The special tokens, whose ids follow the 256 bytes. No text is encoded as one: only `chat` and the model write them.
 */
export const MARKERS = ['<|pad|>', '<|end|>', '<|system|>', '<|user|>', '<|assistant|>'] as const;
const END = BYTES + MARKERS.indexOf('<|end|>');
const header = {
  system: BYTES + MARKERS.indexOf('<|system|>'),
  user: BYTES + MARKERS.indexOf('<|user|>'),
  assistant: BYTES + MARKERS.indexOf('<|assistant|>'),
};

/**
 * The tokenizer of UTF-8 bytes and five markers. A message is its role's marker, its bytes and the end marker; a
 * conversation ends with the assistant's marker, after which the model writes. Tools are plain text. Broken UTF-8
 * decodes to replacement characters, markers decode to names such as `<|end|>`.
 */
export function bytesTokenizer(): Tokenizer {
  const encode = (text: string): number[] => [...new TextEncoder().encode(requireWellFormed(text))];
  return {
    vocabSize: BYTES + MARKERS.length,
    stopTokens: [END],
    toolFormat: 'plain',
    encode,
    decode,
    chat: (messages, exact, tools) => [
      ...plainMessages(messages, tools).flatMap(({ role, content, message }) => [
        ...[header[role], ...(exact?.(message) ?? encode(content)), END],
      ]),
      header.assistant,
    ],
    toJSON: () => ({ type: 'bytes' }),
  };
}

function decode(tokens: readonly number[]): string {
  // A marker ends a run of bytes, so that no character combines bytes from both sides. A leading byte order mark is
  // text.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let text = '';
  let run: number[] = [];
  const flush = () => {
    text += decoder.decode(Uint8Array.from(run));
    run = [];
  };
  for (const token of tokens) {
    if (token < BYTES) {
      run.push(token);
    } else {
      flush();
      text += MARKERS[token - BYTES] ?? REPLACEMENT;
    }
  }
  flush();
  return text;
}
