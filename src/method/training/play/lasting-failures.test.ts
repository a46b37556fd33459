import { describe, expect, it } from 'vitest';
import type { Episode, Failure } from '../../../base/core/episode.js';
import { failuresAfter, failureWarnings, fatalFailure, type LastingFailures } from './lasting-failures.js';

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
    expect(fatal([down, slow], [slow, down], [down, undefined], [down, slow])).toEqual(Array(4).fill(undefined));
  });

  it('in the first step if no output fits, and says that the model is too weak; later only after three steps', () => {
    expect(fatal([unfit, unfit])[0]).toMatch(
      /^every episode of step 1 failed alike: \(invalid-output\) no JSON\nThe model is too weak/,
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
  const most = [down, { ...down, message: 'other' }, undefined];

  it('is reported once, after three steps in a row, with its share', () => {
    const message = 'step 3: for 3 steps most episodes fail for one reason, now 67 % of them: (backend) solver: 503';
    expect(warned(most, most, most, most, [undefined], most, most, most)).toEqual([
      ...[[], [], [message], [], [], [], [], []],
    ]);
  });

  it('is counted from the beginning if a step has fewer', () => {
    const few = [down, undefined];
    expect(warned(most, most, few, most, most).flat()).toEqual([]);
  });

  it('leaves no state if there is none', () => {
    expect(over([[undefined], [down, undefined]], failuresAfter).after).toEqual({});
  });
});
