import { expect, it } from 'vitest';
import { ArgumentError } from '../../base/core/errors.js';
import { assistant, type Message, user } from '../../base/core/message.js';
import { promptMessages } from './prompt-messages.js';

it('makes one message of a text and puts the system prompt first', () => {
  expect(promptMessages('Solve', '1+1')).toEqual([{ role: 'system', content: 'Solve' }, user('1+1')]);
  expect(promptMessages(undefined, [user('1+1'), assistant('')])).toEqual([user('1+1'), assistant('')]);
});

it.each([
  [3, 'expected a text or a list of messages, got a value of type number'],
  [undefined, 'expected a text or a list of messages, got undefined'],
  [null, 'expected a text or a list of messages, got null'],
  [[user('1+1'), { role: 'user' }], 'message 2: expected a text as its content, got undefined'],
  [[{ role: 'user', content: { text: '1' } }], 'message 1: expected a text as its content, got a value of type object'],
  [['1+1'], 'message 1: expected a text as its content, got undefined'],
])('refuses %j, which a template would write down as it is', (input, message) => {
  const call = () => promptMessages('Solve', input as unknown as Message[]);
  expect(call).toThrow(ArgumentError);
  expect(call).toThrow(message);
});
