import type { Episode, Failure } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import {
  commonFailure,
  failureKinds,
  failuresAfter,
  failureWarnings,
  fatalFailure,
  type LastingFailures,
} from './failures.js';

const groups = (...failures: (Failure | undefined)[]) => {
  const task = { id: 't', data: {} };
  const episodes = failures.map((failure) => ({ task, ...(failure && { failure }) }) as unknown as Episode);
  return [
    { task, episodes: episodes.slice(0, 1) },
    { task, episodes: episodes.slice(1) },
  ];
};
const answer = (line: number): Failure => ({
  reason: 'backend',
  agent: 'solver',
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

const down: Failure = { reason: 'backend', agent: 'solver', message: 'solver: 503' };
const slow: Failure = { reason: 'timeout', message: 'not over after 9 ms' };
const unfit: Failure = { reason: 'invalid-output', agent: 'solver', message: 'no JSON' };

/** The steps of a run, each with the failures of its episodes; the last outcome of `act`, and the counts after all. */
function over<T>(steps: readonly (readonly (Failure | undefined)[])[], act: (b: LastingFailures, p: Played) => T) {
  let before: LastingFailures = {};
  const results = steps.map((failures, i) => {
    const episodes = failures.map((failure) => ({ ...(failure && { failure }) }) as unknown as Episode);
    const played = { step: i + 1, all: [{ task: { id: 't', data: {} }, episodes }] };
    const result = act(before, played);
    before = JSON.parse(JSON.stringify(failuresAfter(before, played)));
    return result;
  });
  return { results, after: before };
}
type Played = Parameters<typeof fatalFailure>[1];

const fatal = (...steps: (Failure | undefined)[][]) => over(steps, fatalFailure).results;
const warned = (...steps: (Failure | undefined)[][]) =>
  over(steps, failureWarnings).results.map((warnings) => warnings.map(({ message }) => message.split('\n', 1)[0]));

describe('a run ends', () => {
  it('with a step in which all episodes fail for one reason', () => {
    expect(fatal([down, undefined], [down, { ...down, message: 'solver: <html>' }])).toEqual([
      undefined,
      'every episode of step 2 failed alike: (backend) solver: 503',
    ]);
  });

  it('with the third step in a row in which all fail, for any reasons', () => {
    const [, , third, ...others] = fatal([down, slow], [slow, down], [down, down, slow]);
    expect(third).toBe('every episode of the last 3 steps failed; in step 3, 67 % of them: (backend) solver: 503');
    expect(others).toEqual([]);
    expect(fatal([unfit, slow], [slow, unfit], [unfit, undefined], [unfit, slow])).toEqual(Array(4).fill(undefined));
  });

  it('in the first step if no output fits, and says that the model is too weak; later only after three steps', () => {
    expect(fatal([unfit, unfit])[0]).toMatch(
      /^every episode of step 1 failed alike: \(invalid-output\) no JSON\nIf this happens often, the model is too weak/,
    );
    const [first, second, third, fourth] = fatal([undefined], [unfit], [unfit], [unfit]);
    expect([first, second, third]).toEqual([undefined, undefined, undefined]);
    expect(fourth).toMatch(/^every episode of step 4 failed alike/);
  });

  it('not for a step without episodes', () => {
    expect(fatal([], [], [], [])).toEqual(Array(4).fill(undefined));
  });
});

describe('a failure of most episodes', () => {
  const most = [slow, { ...slow, message: 'other' }, undefined];

  it('is reported once, after three steps in a row, with its share', () => {
    const message =
      'step 3: for 3 steps most episodes fail for one reason, now 67 % of them: (timeout) not over after 9 ms';
    expect(warned(most, most, most, most, [undefined], most, most, most)).toEqual([
      ...[[], [], [message], [], [], [], [], []],
    ]);
  });

  it('is counted from the beginning if a step has fewer', () => {
    const few = [slow, undefined];
    expect(warned(most, most, few, most, most).flat()).toEqual([]);
  });

  it('leaves no state if there is none', () => {
    expect(over([[undefined], [slow, undefined]], failuresAfter).after).toEqual({});
  });
});

describe('calls that fail in more than a fifth of the episodes', () => {
  const refused: Failure = { reason: 'error', message: 'status 422' };
  const ok = undefined;
  const many = [refused, ok, ok, ok];
  const few = [refused, ok, ok, ok, ok];

  it('are reported in the first step of a row', () => {
    const message = (step: number) => `step ${step}: 25 % of the episodes fail for one reason: (error) status 422`;
    expect(warned(few, many, many, few, many)).toEqual([[], [message(2)], [], [], [message(5)]]);
  });

  it('end the run after three steps in a row, and name the reason', () => {
    const [, , , third] = fatal(few, many, many, many);
    expect(third).toMatch(
      /^for 3 steps more than 20 % of the episodes failed for one reason; in step 4, 25 % of them: \(error\) status 422\n/,
    );
    expect(fatal(many, many, few, many, many)).toEqual(Array(5).fill(undefined));
    // Two reasons, each below a fifth.
    expect(fatal(...Array(4).fill([refused, down, ok, ok, ok, ok]))).toEqual(Array(4).fill(undefined));
  });

  it('do not include what models cause: outputs that do not fit, and episodes that take too long', () => {
    for (const failure of [unfit, slow]) {
      const steps = Array(4).fill([failure, ok, ok]);
      expect(fatal(...steps)).toEqual(Array(4).fill(undefined));
      expect(warned(...steps).flat()).toEqual([]);
    }
  });
});
