import { describe, expect, it } from 'vitest';
import type { Episode, Failure } from '../../../base/core/episode.js';
import { commonFailure, failureKinds } from './common-failure.js';

const groups = (...failures: (Failure | undefined)[]) => {
  const task = { id: 't', data: {} };
  const episodes = failures.map((failure) => ({ task, ...(failure && { failure }) }) as unknown as Episode);
  return [
    { task, episodes: episodes.slice(0, 1) },
    { task, episodes: episodes.slice(1) },
  ];
};
const answer = (line: number): Failure => ({
  ...{ reason: 'backend', agent: 'solver' },
  message: `solver: line ${line}: <html>`,
});
const thrown = (message: string, line: number): Failure => ({
  reason: 'error',
  message,
  stack: `    at play (team.ts:${line}:1)\n    at other (x.ts:${message.length}:1)`,
});

describe('the failure that all episodes share', () => {
  it.each<[string, (Failure | undefined)[]]>([
    ['a server that answers a page, apart from numbers', [answer(1), answer(2), answer(30)]],
    ['errors at any place, with any message', [thrown('no key a', 3), thrown('no key b', 4)]],
    ['whatever a server says', [answer(1), { ...answer(1), message: 'solver: log-probs NaN' }]],
    ['the only failure', [answer(1)]],
  ])('is %s', (_, failures) => {
    expect(commonFailure(groups(...failures))).toBe(failures[0]);
  });

  it.each<[string, (Failure | undefined)[]]>([
    ['an episode that did not fail', [answer(1), undefined, answer(1)]],
    ['other agents', [answer(1), { ...answer(1), agent: 'verifier' }]],
    ['other reasons', [answer(1), { ...answer(1), reason: 'timeout' }]],
    ['no episode at all', []],
  ])('is none with %s', (_, failures) => {
    expect(commonFailure(groups(...failures))).toBeUndefined();
  });
});

it('failures are counted by reason and agent, the most frequent kind first', () => {
  const kinds = failureKinds(groups(thrown('a', 1), answer(1), undefined, answer(2)));
  expect(kinds).toEqual([
    { kind: 'backend solver', first: answer(1), share: 0.5 },
    { kind: 'error', first: thrown('a', 1), share: 0.25 },
  ]);
});
