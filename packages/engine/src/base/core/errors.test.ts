import { describe, expect, it } from 'vitest';
import { EpisodeOverError, messageOf } from './errors.js';

describe('the message of a thrown value', () => {
  const unreadable = {
    get message() {
      throw new Error('no');
    },
  };
  it.each<[string, unknown, string]>([
    ['an error', new TypeError('no such field'), 'no such field'],
    [
      'an error of several addresses',
      new AggregateError([new Error('no ::1'), new Error('no 127.0.0.1')]),
      'no ::1, no 127.0.0.1',
    ],
    ['a text', 'slow down', 'slow down'],
    ['null', null, 'null'],
    ['an object with a message', { code: 429, message: 'slow down' }, 'slow down'],
    ['an object that tells a code', { status: 429, headers: { authorization: 'sk-1' } }, 'status 429'],
    [
      'an object of other fields',
      { headers: { authorization: 'sk-1' }, body: {} },
      'an object with the fields headers, body',
    ],
    ['an empty object', {}, '[object Object]'],
    ['an object with a text of its own', { toString: () => 'own text' }, 'own text'],
    ['an object that cannot be read', unreadable, 'the thrown value cannot be read'],
  ])('%s', (_, thrown, message) => {
    expect(messageOf(thrown)).toBe(message);
  });
});

it('tells that an episode is over in a program that has frozen the errors of JavaScript', () => {
  const { stackTraceLimit } = Error;
  Object.defineProperty(Error, 'stackTraceLimit', { value: 10, writable: false, configurable: true });
  try {
    expect(new EpisodeOverError('it ended')).toMatchObject({ name: 'AbortError', message: 'it ended' });
  } finally {
    Object.defineProperty(Error, 'stackTraceLimit', { value: stackTraceLimit, writable: true });
  }
  expect(new EpisodeOverError('it ended').stack).not.toContain(' at ');
  expect(Error.stackTraceLimit).toBe(stackTraceLimit);
});
