/** Stop texts of clients, at each place and in each batch of tokens. */
import type { AgentModel } from '@drmas/engine/endpoints';
import { bytesTokenizer } from '@drmas/engine/tokens';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { processorSeconds } from '../../../test/support/time-and-chance.js';
import { chatDialect } from '../../gateway/dialects/chat-dialect.js';
import { responsesDialect } from '../../gateway/dialects/responses-dialect.js';
import type { ModelAnswer } from '../../gateway/dialects.js';
import { answerStream } from './answer-stream.js';

const tokenizer = bytesTokenizer();

/** A model that writes bytes in batches, then ends with its stop token or with its limit. */
function writing(bytes: readonly number[], sizes: readonly number[], isCut: boolean): AgentModel {
  const tokens = isCut ? [...bytes] : [...bytes, ...tokenizer.stopTokens];
  const logprobs = tokens.map(() => -1);
  return {
    agent: { name: 'agent', sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 1000 } },
    model: {
      tokenizer,
      context: 4096,
      async generate(_request, signal, onTokens) {
        for (let at = 0, i = 0; at < tokens.length && !signal?.aborted; i++) {
          const size = sizes[i % sizes.length] ?? 1;
          onTokens?.(tokens.slice(at, at + size));
          at += size;
        }
        signal?.throwIfAborted();
        return { tokens, logprobs, finishReason: isCut ? 'length' : 'stop', policyVersion: 0 };
      },
    },
  } as AgentModel;
}

async function answered(agentModel: AgentModel, stop: readonly string[]) {
  const messages = [{ role: 'user' as const, content: 'go' }];
  let [streamed, answer]: [string, ModelAnswer | undefined] = ['', undefined];
  const request = { model: 'agent', messages, sampling: { stop }, ignored: [] };
  for await (const delta of answerStream(agentModel, request as never, new AbortController().signal)) {
    if (delta.type === 'text') streamed += delta.text;
    if (delta.type === 'answer') answer = delta.answer;
  }
  if (answer === undefined) throw new Error('no answer');
  return { streamed, answer };
}

/** The text to be written: the first token behind which the text has a stop text ends the answer before it. */
function expected(bytes: readonly number[], stop: readonly string[]) {
  const texts = stop.filter((text) => text !== '');
  for (let length = 1; length <= bytes.length; length++) {
    const text = tokenizer.decode(bytes.slice(0, length));
    if (text.endsWith('\ufffd') && length < bytes.length) continue; // the character goes on
    const places = texts.map((each) => text.indexOf(each)).filter((at) => at >= 0);
    if (places.length > 0) {
      const at = Math.min(...places);
      return { content: text.slice(0, at), ends: texts.filter((each) => text.startsWith(each, at)), tokens: length };
    }
  }
  return { content: tokenizer.decode(bytes), ends: [], tokens: undefined };
}

const words = fc.constantFrom('a', 'b', 'ab', 'aab', ' ', '\n', 'é', '😀', '日本', 'e\u0301', '.', '"', '</x>');
const texts = fc.array(words, { maxLength: 8 }).map((parts) => parts.join(''));
const stops = fc.array(fc.oneof(words, texts), { maxLength: 5 });
const cut = fc.integer({ min: 0, max: 3 });

describe('the stop texts of a client', () => {
  it('end the answer before the first that is written, however the tokens come', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(texts, stops, sizes, fc.boolean(), cut, async (text, stop, batches, isCut, missing) => {
        const whole = tokenizer.encode(text);
        const bytes = isCut ? whole.slice(0, Math.max(0, whole.length - missing)) : whole;
        const { content, ends, tokens } = expected(bytes, stop);
        const { streamed, answer } = await answered(writing(bytes, batches, isCut), stop);
        expect(answer.content).toBe(content);
        expect(content.startsWith(streamed)).toBe(true);
        expect(answer.finishReason).toBe(ends.length > 0 || !isCut ? 'stop' : 'length');
        if (ends.length > 0) expect(ends).toContain(answer.stopText);
        else expect(answer.stopText).toBeUndefined();
        if (tokens !== undefined) expect(answer.usage.responseTokens).toBe(tokens);
      }),
      { numRuns: 500 },
    );
  });
});

it('takes a time that grows with the length of an answer', async () => {
  const word = 'a word of many letters, or a line of spaces, which some vocabularies have as one token. ';
  const count = 30_000;
  const agentModel = writing(new Array(count).fill(97), [1], true);
  const decode = (ids: readonly number[]) => ids.map(() => word).join('');
  const long = { ...agentModel, model: { ...agentModel.model, context: 1e6, tokenizer: { ...tokenizer, decode } } };
  const seconds = await processorSeconds(async () => {
    const { streamed, answer } = await answered(long as AgentModel, ['a text', 'that never comes']);
    expect(streamed.length).toBe(count * word.length - 1); // the space at the end waits
    expect(answer.content.length).toBe(count * word.length);
  });
  expect(seconds).toBeLessThan(3);
});

describe('the tokens of thinking', () => {
  const thought = '<think>é?</think>';
  const bytes = tokenizer.encode(thought).length;

  it.each([
    ['a thought and an answer', `${thought}\n5`, [1], false, bytes],
    ['in one piece', `${thought}\n5`, [99], false, bytes],
    ['a later end of thinking', `${thought}a</think>`, [1], false, bytes],
    ['a thought that a limit cuts off', '<think>Hm', [1], true, 9],
    ['no thought', '5', [1], false, undefined],
    ['an empty thought', '<think></think>5', [1], false, undefined],
    ['a thought between the marks of Magistral', '[THINK]é?[/THINK]5', [1], false, bytes],
    ['the same with the mark of another', '[THINK]</think>[/THINK]5', [9], false, 23],
  ] as const)('are counted: %s', async (_, text, sizes, isCut, count) => {
    const { answer } = await answered(writing([...tokenizer.encode(text)], sizes, isCut), []);
    expect(answer.usage.reasoningTokens).toBe(count);
    const request = { model: 'agent', messages: [], sampling: {}, ignored: [] } as never;
    const details = { reasoning_tokens: count ?? 0 };
    expect(chatDialect.write(request, answer, [answer])).toMatchObject({
      usage: { completion_tokens_details: { reasoning_tokens: 2 * details.reasoning_tokens } },
    });
    expect(responsesDialect.write(request, answer)).toMatchObject({ usage: { output_tokens_details: details } });
  });
});
