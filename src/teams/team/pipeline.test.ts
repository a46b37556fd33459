import fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { playEpisode } from '../rollout/play-episode.js';
import { type PipelineAgent, type PipelineOptions, pipeline } from './pipeline.js';
import type { Team } from './team.js';

const task = { id: 'task', data: { question: '1+1', answer: '2' } };

/** Plays episode number `sample`; every agent says its name, the last one the answer. */
async function play<Name extends string>(
  options: PipelineOptions<Name>,
  { sample = 0, seed = 1, last = '\\boxed{2}' } = {},
) {
  const names = Object.keys(options.agents);
  const team = pipeline(options) as unknown as Team;
  const sampler = scriptedSampler(({ policy }) => (policy === names.at(-1) ? last : `I am ${policy}.`));
  // Hundreds of episodes share a thread: on a busy machine the last of them ends late.
  const context = scriptedContext(team, sampler, { seed, timeoutMs: 600_000 });
  const episode = await playEpisode(context, { team, task, sample, phase: 'training', step: 1 });
  return { ...episode, called: episode.turns.map(({ agent }) => agent) };
}

const three = { first: {}, second: {}, third: {} };

describe('a pipeline', () => {
  it('calls its agents in turn, each with the earlier replies; the last one answers', async () => {
    const { turns, outcome, score } = await play({ agents: three });
    expect(turns.map(({ agent, messages }) => [agent, messages.at(-1)?.content])).toEqual([
      ['first', '1+1'],
      ['second', '1+1\nfirst: I am first.'],
      ['third', '1+1\nfirst: I am first.\nsecond: I am second.'],
    ]);
    expect(outcome).toEqual({
      answer: '2',
      said: [
        { agent: 'first', text: 'I am first.' },
        { agent: 'second', text: 'I am second.' },
        { agent: 'third', text: '\\boxed{2}' },
      ],
    });
    expect(score).toEqual({ team: 1, agents: {}, parts: { correct: 1 } });
    expect(await play({ agents: three }, { last: 'two' })).toMatchObject({
      outcome: { answer: undefined },
      score: { team: 0 },
    });
  });

  it('calls each agent with its own probability, the last one always, in every size', async () => {
    const PLAYS = 80;
    const sizes = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 7 });
    await fc.assert(
      fc.asyncProperty(sizes, async (quarters) => {
        const entries = [...quarters.map((q, i) => [`a${i}`, { probability: q / 4 }] as const), ['last', {}] as const];
        const agents: Record<string, PipelineAgent> = Object.fromEntries(entries);
        const plays = await Promise.all(Array.from({ length: PLAYS }, (_, sample) => play({ agents }, { sample })));
        for (const [name, { probability = 1 }] of Object.entries(agents)) {
          const share = plays.filter(({ called }) => called.includes(name)).length / plays.length;
          // Five standard deviations; none if an agent is certain to be called or certain not to be.
          expect(Math.abs(share - probability)).toBeLessThanOrEqual(
            5 * Math.sqrt((probability * (1 - probability)) / PLAYS),
          );
        }
        for (const { called } of plays)
          expect(called).toEqual(Object.keys(agents).filter((name) => called.includes(name)));
      }),
      { numRuns: 6 },
    );
  });

  it('decides by the episode alone: siblings differ, a repeated run does not', async () => {
    const agents = { first: { probability: 0.5 }, second: { probability: 0.5 }, third: {} };
    const all = async (options: object) =>
      Promise.all(
        Array.from({ length: 16 }, async (_, sample) => (await play({ agents }, { sample, ...options })).called),
      );
    const once = await all({});
    expect(await all({})).toEqual(once);
    expect(await all({ last: 'something else' })).toEqual(once);
    expect(await all({ seed: 2 })).not.toEqual(once);
    expect(new Set(once.map(String)).size).toBeGreaterThan(2);
  });

  it('gives its agents the rewards of the option', async () => {
    const { score } = await play({
      agents: { helper: { probability: 0 }, answerer: {} },
      reward: ({ outcome }) => ({ team: outcome.answer === '2', agents: { helper: outcome.said.length - 1 } }),
    });
    expect(score).toEqual({ team: 1, agents: { helper: 0 }, parts: {} });
    pipeline({
      agents: { helper: {}, answerer: {} },
      // @ts-expect-error there is no agent 'helpr'
      reward: () => ({ team: 1, agents: { helpr: 1 } }),
    });
  });

  it('accepts parsers, penalties and prompts', async () => {
    const agents = {
      first: { system: 'Hint.', parse: () => undefined, invalidPenalty: 0.25 },
      second: { parse: (text: string) => text.at(-2) },
    };
    const team = pipeline({ agents });
    expectTypeOf<keyof typeof team.agents>().toEqualTypeOf<'first' | 'second'>();
    const prompt = ({ agent, said }: { agent: string; said: readonly unknown[] }) => `${agent} ${said.length}`;
    const { turns, outcome } = await play({ agents, prompt });
    expect(turns.map(({ penalty, messages }) => [penalty, messages.map(({ content }) => content)])).toEqual([
      [0.25, ['Hint.', 'first 0']],
      [0, ['second 1']],
    ]);
    expect(outcome).toMatchObject({ answer: '2' });
  });

  it('refuses invalid pipelines', () => {
    const refused = (options: object, message: string | RegExp) =>
      expect(() => pipeline(options as PipelineOptions<string>)).toThrow(message);
    refused({ agents: { only: {} } }, /^pipeline\(\.\.\.\): agents: expected 2 to 8 agents/);
    refused(
      { agents: Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`a${i}`, {}])) },
      'expected 2 to 8 agents',
    );
    refused({ agents: { first: {}, last: { probability: 0.5 } } }, 'the last agent answers');
    refused({ agents: { first: { probability: 1.5 }, last: {} } }, 'agents.first.probability');
    refused({ agents: { first: { probabilty: 1 }, last: {} } }, 'probabilty');
    refused({ agents: three, reward: 1 }, 'reward: expected a function');
    refused({ agents: three, order: [] }, 'order');
  });
});
