import { ArgumentError } from '@drmas/engine/errors';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { agent } from './agent.js';
import { defineTeam } from './team.js';

const good = { task: z.object({ n: z.number() }), agents: { a: agent() }, play: async () => 1, reward: () => 1 };

describe('defineTeam', () => {
  it('fills in the name and keeps the rest', () => {
    expect(defineTeam(good)).toEqual({ ...good, name: 'team' });
    expect(defineTeam({ ...good, name: 'mine' }).name).toBe('mine');
  });

  it.each([
    ['a task that is not a schema', { task: { n: 1 } }, 'task: expected a schema of zod'],
    ['no agents', { agents: {} }, 'agents: expected at least one agent'],
    ['an invalid agent', { agents: { a: { system: 'x' } } }, 'agents.a'],
    ['an invalid name', { agents: { 'a/b': agent() } }, 'expected names that begin with a letter'],
    ['a name that every object has', { agents: { constructor: agent() } }, 'expected other names than those'],
    ['a name that no folder can have', { agents: { ['a'.repeat(101)]: agent() } }, 'at most 100 characters'],
    ['no play', { play: undefined }, 'play: expected a function'],
    ['no reward', { reward: 1 }, 'reward: expected a function'],
    ['an unknown key', { rewards: 1 }, 'rewards'],
  ])('refuses %s', (_, change, message) => {
    const define = () => defineTeam({ ...good, ...change } as unknown as typeof good);
    expect(define).toThrow(ArgumentError);
    expect(define).toThrow(message);
  });
});

describe('agent', () => {
  it('takes the whole text as its value by default', () => {
    expect(agent({ system: 'Talk.' })).toMatchObject({ system: 'Talk.', sampling: {}, invalidPenalty: 0 });
    expect(agent().parse(' any ')).toBe(' any ');
  });

  it.each([
    [{ parse: 'boxed' }, 'parse: expected a function'],
    [{ sampling: { temperature: -1 } }, 'sampling.temperature'],
    [{ sampling: { heat: 1 } }, 'heat'],
    [{ invalidPenalty: -0.1 }, 'invalidPenalty'],
    [{ prompt: 'x' }, 'prompt'],
  ])('refuses %j', (spec, message) => {
    expect(() => agent(spec as never)).toThrow(message);
  });
});
