import { ArgumentError, messageOf } from '@drmas/engine/errors';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { fromScorers } from '../scorers/scorers.js';
import { checkedOptions } from '../tasks/checked-options.js';
import { searchR1Retriever } from '../tasks/retrieval/search-r1.js';
import { mcpTools } from '../tasks/worlds/mcp-tools.js';
import { agent } from './agent.js';
import { pipeline } from './pipeline.js';
import { plannerExecutorVerifier } from './planner-executor-verifier.js';
import { searchTeam } from './search.js';
import { solverVerifier } from './solver-verifier.js';
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

describe('each function that makes a part of a team', () => {
  const makers: Readonly<Record<string, (options: Record<string, unknown>) => unknown>> = {
    agent: (options) => agent(options as never),
    checkedOptions: (options) => checkedOptions('mine', z.strictObject({ concurrency: z.int() }).partial(), options),
    defineTeam: (options) => defineTeam({ ...good, ...options } as never),
    fromScorers: (options) => fromScorers([() => 1], options as never),
    mcpTools: (options) => mcpTools('http://127.0.0.1:1/mcp', options as never),
    pipeline: (options) => pipeline({ agents: { a: {}, b: {} }, ...options } as never),
    plannerExecutorVerifier: (options) => plannerExecutorVerifier(options as never),
    searchR1Retriever: (options) => searchR1Retriever({ url: 'http://127.0.0.1:1', ...options } as never),
    searchTeam: (options) => searchTeam({ retriever: { search: async () => [] }, ...options } as never),
    solverVerifier: (options) => solverVerifier(options as never),
  };

  it.each(Object.entries(makers))('%s names the options that it knows, as a recipe does', (_name, make) => {
    const known = /\(known: ([^)]*)\)/.exec(messageOfThrown(() => make({ zzzz: 1 })))?.[1]?.split(', ') ?? [];
    expect(known).not.toEqual([]);
    for (const option of known) {
      const text = messageOfThrown(() => make({ [`${option}_`]: 1 }));
      expect(text).toContain(`unknown key '${option}_'; did you mean '`);
    }
  });

  it('shows the value that it got', () => {
    expect(messageOfThrown(() => agent({ invalidPenalty: -1 }))).toContain('expected a number >= 0, got -1');
    expect(messageOfThrown(() => agent({ sampling: { topP: '1' as never } }))).toContain(
      'sampling.topP: expected a number, got "1"',
    );
  });
});

function messageOfThrown(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return messageOf(error);
  }
  return 'nothing was thrown';
}

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
