import { describe, expect, it } from 'vitest';
import { run } from '../../../test/fixtures/run-events.js';
import { madeUpEpisode } from '../../../test/support/recorded-run.js';
import { storedEpisode } from './episode-files.js';
import { episodeFault, eventFault } from './stored-shapes.js';

type Holder = Record<string, unknown>;

/** Each value of a stored row, and where it stands. */
function* placesIn(value: unknown, path = ''): Generator<{ holder: Holder; key: string; path: string }> {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    const at = path === '' ? key : `${path}.${key}`;
    yield { holder: value as Holder, key, path: at };
    yield* placesIn((value as Holder)[key], at);
  }
}

/** The team's own values, and single tokens, are not looked at. */
const FREE = /^(outcome|task\.data|log\.\d+\.value)|\.(prompt|response|logprobs|value)\b|explanation|\.(action|split)$/;

/** The places at which a value of another type is not named. */
function unnamed(row: unknown, faultOf: (row: never) => string | undefined): string[] {
  const copy: unknown = JSON.parse(JSON.stringify(row));
  const found: string[] = [];
  for (const { holder, key, path } of placesIn(copy)) {
    const before = holder[key];
    if (FREE.test(path) || (typeof before !== 'number' && (typeof before !== 'object' || before === null))) continue;
    for (const other of ['text', true, typeof before === 'number' ? {} : 5]) {
      holder[key] = other;
      const fault = faultOf(copy as never);
      if (fault?.startsWith(`${path}: expected`) !== true) found.push(`${path} = ${JSON.stringify(other)}: ${fault}`);
    }
    holder[key] = before;
  }
  return found;
}

const episode = storedEpisode(
  { ...madeUpEpisode('task', 0, 1, 'words'), failure: { reason: 'error', message: 'broken' }, log: [] },
  [0.5, [1, 2, 3]],
);

describe('a value of another type is named with its field', () => {
  it.each([...new Map(run.map((event) => [event.type, event] as const))])('in an event: %s', (_, event) => {
    expect(eventFault(JSON.parse(JSON.stringify(event)))).toBeUndefined();
    expect(unnamed(event, eventFault)).toEqual([]);
  });

  it('in an episode', () => {
    const row = JSON.parse(JSON.stringify(episode));
    expect(episodeFault(row)).toBeUndefined();
    expect(unnamed({ ...row, turns: row.turns.slice(0, 1) }, episodeFault)).toEqual([]);
    for (const other of [null, [], 'text']) expect(episodeFault(other)).toMatch(/expected an episode/);
  });
});

it('takes numbers that were not measured, fields of later versions, and events of later versions', () => {
  const step = JSON.parse(JSON.stringify(run.find(({ type }) => type === 'step')));
  for (const agent of Object.values<Holder>(step.agents)) Object.assign(agent, { gradientNorm: null, later: {} });
  expect(eventFault(step)).toBeUndefined();
  expect(eventFault({ type: 'of later', step: 'x' })).toBeUndefined();
  expect(eventFault({ ...step, version: 2 })).toMatch(/later version of drmas \(format 2, this version reads 1\)/);
});

it('takes names that every object has, but no name that records leave out', () => {
  const step = JSON.parse(JSON.stringify(run.find(({ type }) => type === 'step')));
  step.agents.constructor = step.agents.solver;
  expect(eventFault(step)).toBeUndefined();
  step.agents = JSON.parse('{"__proto__":{}}');
  expect(eventFault(step)).toBe('agents: expected other names than __proto__');
  for (const type of ['toString', '__proto__', 'constructor']) expect(eventFault({ type })).toBeUndefined();
});
