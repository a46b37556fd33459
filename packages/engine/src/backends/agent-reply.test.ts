import { expect, it } from 'vitest';
import { bytesTokenizer } from '../model/tokenizers/bytes.js';
import { callReader } from './agent-reply.js';

const tokenizer = bytesTokenizer();
const add = { name: 'add', parameters: { type: 'object', properties: { a: { type: 'integer' } } } };

it.each([
  ['<think>\n', 'two or</think>\n@add(2)', '', 1],
  ['<think>\n', 'I think of\n@add(2)', '', 0], // cut off while it thought
  ['', 'Write </think>.\n@add(2)', 'Write </think>.', 1],
  ['', '<think>a</think>\n@add(2)', '', 1],
])('what a model thought is no answer: prompt %j, answer %j', (prompt, text, content, calls) => {
  const read = callReader({ model: { tokenizer }, agent: undefined } as never, [add], 1);
  const reply = read(text, tokenizer.encode(prompt));
  expect([reply.content, reply.toolCalls.length]).toEqual([content, calls]);
});
