import { describe, expect, it } from 'vitest';
import { assistant, system, user } from '../../base/core/message.js';
import { choicesTokenizer } from './choice-names.js';
import { createTokenizer } from './create-tokenizer.js';

const table = { choices: ['ask', 'skip'], features: ['easy', 'hard'] };

describe('the names of a table of choices', () => {
  const tokenizer = choicesTokenizer(table);

  it('are tokens, the choices first', () => {
    expect(['ask', 'skip', 'easy', 'hard'].map((name) => tokenizer.encode(name))).toEqual([[0], [1], [2], [3]]);
    expect(tokenizer.decode([1])).toBe('skip');
    expect(createTokenizer(JSON.parse(JSON.stringify(tokenizer))).encode('hard')).toEqual([3]);
  });

  it('are read from the last message, which is a feature', () => {
    expect(tokenizer.chat([system('route'), user('hard'), assistant('ask'), user('easy')])).toEqual([2]);
    expect(() => tokenizer.chat([user('odd')])).toThrow('a table of choices has no "odd"; it has easy, hard');
    expect(() => tokenizer.chat([user('ask')])).toThrow(/has no "ask"/);
    expect(choicesTokenizer({ choices: ['a', 'b'], features: [''] }).chat([user('anything')])).toEqual([2]);
  });

  it('are all different', () => {
    expect(() => choicesTokenizer({ choices: ['a', 'b'], features: ['a'] })).toThrow(/expected different names/);
  });
});
