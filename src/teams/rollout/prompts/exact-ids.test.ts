import { assistant, type Message, type Turn, toolResult, user } from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { describe, expect, it } from 'vitest';
import { ExactConversations } from './exact-ids.js';

const COUNT = 3_000;
const tokenizer = bytesTokenizer();
const turnOf = (i: number, fields: Partial<Turn>) =>
  ({
    id: i.toString(16).padStart(16, '0'),
    agent: 'a',
    prompt: [1],
    response: [7],
    finishReason: 'length',
    ...fields,
  }) as Turn;
const turnsOf = (fields: (i: number) => Partial<Turn>) => Array.from({ length: COUNT }, (_, i) => turnOf(i, fields(i)));

describe('the prompt of an agent that has answered 3,000 times', () => {
  const history = (messages: readonly Message[], turns: readonly Turn[]) =>
    new ExactConversations().encode({ messages }, turns, tokenizer).history;
  const none = { exact: 0, byText: 0, byCalls: 0, foreign: 0 };

  it('finds the answers by their texts, one behind the other', () => {
    const turns = turnsOf((i) => ({ text: `answer ${i}` }));
    const messages = [user('begin'), ...turns.map(({ text }) => assistant(text))];
    expect(history(messages, turns)).toEqual({ ...none, byText: COUNT });
  });

  it('finds the answers by their ids, one behind the other', () => {
    const turns = turnsOf((i) => ({ text: `answer ${i}` }));
    const messages = turns.map(({ text, id = '' }): Message => ({ ...assistant(text), turnId: id }));
    expect(history([user('begin'), ...messages], turns)).toEqual({ ...none, exact: COUNT });
  });

  it('finds calls whose ids a framework has replaced', () => {
    const callOf = (i: number) => ({ id: `theirs_${i}`, name: 'look', arguments: `{"at": ${i}}` });
    const turns = turnsOf((i) => ({ text: '', content: '', toolCalls: [{ ...callOf(i), id: 'ours' }] }));
    const messages = turns.flatMap((_, i): Message[] => [
      { ...assistant(''), toolCalls: [callOf(i)] },
      toolResult(callOf(i), 'nothing'),
    ]);
    expect(history(messages, turns)).toEqual({ ...none, byCalls: COUNT });
  });
});
