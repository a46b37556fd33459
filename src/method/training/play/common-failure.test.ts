import { describe, expect, it } from 'vitest';
import type { Episode, Failure } from '../../../base/core/episode.js';
import { commonFailure } from './common-failure.js';

const groups = (...failures: (Failure | undefined)[]) => {
  const task = { id: 't', data: {} };
  const episodes = failures.map((failure) => ({ task, ...(failure && { failure }) }) as unknown as Episode);
  return [
    { task, episodes: episodes.slice(0, 1) },
    { task, episodes: episodes.slice(1) },
  ];
};
const answer = (line: number): Failure => ({ reason: 'backend', message: `solver: line ${line}: <html>` });
const thrown = (message: string, line: number): Failure => ({
  reason: 'error',
  message,
  stack: `    at play (team.ts:${line}:1)\n    at other (x.ts:${message.length}:1)`,
});

describe('the failure that all episodes share', () => {
  it.each<[string, (Failure | undefined)[]]>([
    ['a server that answers a page, apart from numbers', [answer(1), answer(2), answer(30)]],
    ['errors of one place, with any message', [thrown('no key a', 3), thrown('no key b', 3)]],
    ['the only failure', [answer(1)]],
  ])('is %s', (_, failures) => {
    expect(commonFailure(groups(...failures))).toBe(failures[0]);
  });

  it.each<[string, (Failure | undefined)[]]>([
    ['an episode that did not fail', [answer(1), undefined, answer(1)]],
    ['other places', [thrown('no key', 3), thrown('no key', 4)]],
    ['other messages', [answer(1), { reason: 'backend', message: 'solver: out of memory' }]],
    ['other reasons', [answer(1), { ...answer(1), reason: 'timeout' }]],
    ['no episode at all', []],
  ])('is none with %s', (_, failures) => {
    expect(commonFailure(groups(...failures))).toBeUndefined();
  });
});
