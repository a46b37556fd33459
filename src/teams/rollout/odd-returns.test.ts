/** Odd values that a team's functions may return by mistake: each is refused at its place, or has no effect. */

import type { Episode } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { defineTeam, type Team } from '../team/team.js';
import { playEpisode } from './play-episode.js';

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

/** Values that are neither a number nor an object of numbers, by the name that a message has for them. */
const ODD: Readonly<Record<string, () => unknown>> = {
  null: () => null,
  undefined: () => undefined,
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  bigint: () => 1n,
  text: () => 'yes',
  'empty text': () => '',
  list: () => [1],
  'empty list': () => [],
  'empty object': () => ({}),
  Map: () => new Map([['solver', 1]]),
  Set: () => new Set([1]),
  Date: () => new Date(0),
  Error: () => new Error('no reward'),
  Number: () => new Number(1),
  Float32Array: () => new Float32Array([1]),
  function: () => () => 1,
  symbol: () => Symbol('one'),
  promise: () => Promise.resolve(1),
  'object of a text': () => ({ solver: 'good' }),
  'revoked proxy': revoked,
};

/** Where a team returns a value: the functions of a team that does so, and the odd values that mean something there. */
const PLACES: Readonly<Record<string, { functions: (odd: unknown) => object; allowed?: readonly string[] }>> = {
  'the reward': { functions: (odd) => ({ reward: () => odd }), allowed: ['promise'] },
  'a part of the reward': { functions: (odd) => ({ reward: () => ({ right: odd }) }) },
  "the team's reward": { functions: (odd) => ({ reward: () => ({ team: odd }) }) },
  'the rewards of agents': {
    functions: (odd) => ({ reward: () => ({ team: 1, agents: odd }) }),
    allowed: ['undefined', 'empty object'],
  },
  "an agent's own reward": { functions: (odd) => ({ reward: () => ({ team: 1, agents: { solver: odd } }) }) },
  'the rewards of turns': {
    functions: (odd) => ({ reward: () => ({ team: 1, turns: odd }) }),
    allowed: ['undefined', 'empty list'],
  },
  'the reward of a turn': { functions: (odd) => ({ reward: () => ({ team: 1, turns: [{ turn: 0, value: odd }] }) }) },
  'the turn that is rewarded': {
    functions: (odd) => ({ reward: () => ({ team: 1, turns: [{ turn: odd, value: 1 }] }) }),
  },
  'the duration of a turn': {
    functions: (odd) => ({ reward: () => ({ team: 1, turns: [{ turn: 0, value: 1, duration: odd }] }) }),
    allowed: ['undefined'],
  },
  'a misspelt key beside team': { functions: (odd) => ({ reward: () => ({ team: 1, agent: odd }) }) },
  'the success': { functions: (odd) => ({ reward: () => 1, success: () => odd }), allowed: ['promise'] },
  'the metrics': {
    functions: (odd) => ({ reward: () => 1, metrics: () => odd }),
    allowed: ['undefined', 'empty object'],
  },
  'a metric': { functions: (odd) => ({ reward: () => 1, metrics: () => ({ right: odd }) }), allowed: ['undefined'] },
};

/** Plays the team once, with an agent that answers this. */
const playedBy = (team: Team, text = 'about 7'): Promise<Episode> =>
  playEpisode(
    scriptedContext(
      team,
      scriptedSampler(() => text),
    ),
    { team, task: { id: 't', data: {} }, sample: 0, phase: 'training', step: 1 },
  );

const played = (functions: object): Promise<Episode> => {
  const team = defineTeam({
    task: z.unknown(),
    agents: { solver: agent() },
    play: async ({ agents: { solver } }) => (await solver('go')).text,
    reward: () => 1,
  });
  return playedBy({ ...team, ...functions } as unknown as Team);
};

describe('a value that makes no sense', () => {
  it.each(Object.entries(PLACES))('as %s is refused, and never counts as 0 or as nothing', async (_, place) => {
    const { functions, allowed = [] } = place;
    for (const [name, odd] of Object.entries(ODD)) {
      const { failure, score } = await played(functions(odd()));
      if (allowed.includes(name)) expect([failure, score.team], name).toEqual([undefined, 1]);
      else expect(failure?.reason, name).toBe('reward');
      expect(failure?.message ?? '', name).not.toMatch(/\[object|Cannot convert|Cannot read/);
    }
  });
});

describe('a parser', () => {
  const parsedBy = async (parse: (text: string) => unknown, text = 'about 7') => {
    const team = defineTeam({
      task: z.unknown(),
      agents: { solver: agent({ parse, invalidPenalty: 0.25 }) },
      play: async ({ agents: { solver } }) => (await solver('go')).value,
      reward: () => 1,
    }) as unknown as Team;
    return playedBy(team, text);
  };

  it('that is async is refused: each of its values would be a promise, and valid', async () => {
    const { failure } = await parsedBy(async (text) => Number(text));
    expect(failure).toMatchObject({
      reason: 'error',
      agent: 'solver',
      message: 'solver: its parser returned a promise: a parser must not be async; `await` in `play`',
    });
  });

  it.each([
    ['Number', (text: string) => Number(text)],
    ['Number, penalised', (text: string) => ({ value: Number(text), penalised: true })],
    ['Number, not penalised', (text: string) => ({ value: Number(text), penalised: false })],
    ['new Date', () => new Date('no date')],
    ['match', (text: string) => text.match(/^\d+$/)],
    ['undefined with a word', () => ({ value: undefined, penalised: false })],
    ['a word alone', () => ({ penalised: true })],
    ['a word alone, not penalised', () => ({ penalised: false })],
  ])('that gives no value for a text, as %s does, makes the turn invalid', async (_, parse) => {
    const { turns, outcome } = await parsedBy(parse);
    expect(turns).toMatchObject([{ valid: false, penalty: 0.25 }]);
    expect(outcome).toBeUndefined();
  });

  it.each([
    [Number, '  ', false],
    [Number, '0', true],
    [BigInt, '', false],
    [(text: string) => text.length, '', true],
  ])('that is %s reads %j as a value: %s', async (parse, text, valid) => {
    expect((await parsedBy(parse, text)).turns).toMatchObject([{ valid }]);
  });

  const wordless = { value: 7, penalised: 'no' };
  it.each([
    ['a number', () => 7, true, 7],
    ['false', () => false, true, false],
    ['an empty text', () => '', true, ''],
    ['a value and no penalty', () => ({ value: 7, penalised: false }), true, 7],
    ['null and no penalty', () => ({ value: null, penalised: false }), true, null],
    ['null and a penalty', () => ({ value: null, penalised: true }), false, null],
    ['a value and a penalty', () => ({ value: 7, penalised: true }), false, 7],
    ['an object of its own', () => wordless, true, wordless],
    ['a schema that allows null', z.any().transform(() => null), true, null],
    [
      'a schema with a field of that name',
      z.any().transform(() => ({ value: 7, penalised: true })),
      true,
      { value: 7, penalised: true },
    ],
  ])('that gives %s', async (_, parse, valid, value) => {
    const { turns, outcome } = await parsedBy(parse as (text: string) => unknown, '{}');
    expect(turns).toMatchObject([{ valid, penalty: valid ? 0 : 0.25 }]);
    expect(outcome).toEqual(value);
  });

  it('that gives another kind of promise is refused', async () => {
    const later = Object.fromEntries([['then', (done: (value: number) => void) => done(1)]]);
    expect((await parsedBy(() => later)).failure?.message).toContain('a parser must not be async');
  });
});
