import { assistant, toolResult, user } from '@drmas/engine/nouns';
import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { type Agent, agent } from './agent.js';
import { boxed, integer, oneOf } from './parsers.js';
import type { StandardSchema } from './standard-schema.js';
import { defineTeam, type Reply, type Team } from './team.js';

const task = z.object({ question: z.string(), answer: z.string(), level: z.number().default(1) });
const agents = {
  solver: agent({ system: 'Solve.', parse: boxed }),
  verifier: agent({ system: 'Judge.', parse: oneOf('<approve>', '<reject>') }),
  counter: agent({ parse: integer }),
  talker: agent({ system: 'Talk.' }),
  custom: agent({ parse: (text) => (text === '' ? undefined : { words: text.split(' ') }) }),
  charged: agent({ parse: (text) => (text === '' ? { value: 0, penalised: true as const } : text.length) }),
};

describe('the types of a team', () => {
  it('flow from schema and parsers into play, and from play into reward', () => {
    const team = defineTeam({
      task,
      agents,
      async play({ task, agents: { solver, verifier, counter, talker, custom, charged }, signal }) {
        expectTypeOf(task).toEqualTypeOf<{ question: string; answer: string; level: number }>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        let draft = await solver(task.question);
        expectTypeOf(draft).toEqualTypeOf<Reply<string>>();
        expectTypeOf(draft.value).toEqualTypeOf<string | undefined>();
        const verdict = await verifier([user(task.question), assistant(draft.text)]);
        expectTypeOf(verdict.value).toEqualTypeOf<'<approve>' | '<reject>' | undefined>();
        // @ts-expect-error the verifier has no such verdict
        if (verdict.value === '<aprove>') return { answer: undefined, words: 0 };
        if (verdict.value === '<reject>')
          draft = await solver([user(task.question), assistant(draft.text), user('Rejected. Again.')]);
        expectTypeOf((await counter('how many?')).value).toEqualTypeOf<number | undefined>();
        expectTypeOf((await talker('hello')).value).toEqualTypeOf<string | undefined>();
        expectTypeOf((await charged('hello')).value).toEqualTypeOf<number | undefined>();
        const words = await custom('hello');
        if (words.valid) expectTypeOf(words.value).toEqualTypeOf<{ words: string[] }>();
        return { answer: draft.value, words: words.value?.words.length ?? 0 };
      },
      reward: async ({ outcome, task, episode, agents: { counter } }) => {
        expectTypeOf((await counter('how good?')).value).toEqualTypeOf<number | undefined>();
        expectTypeOf(outcome).toEqualTypeOf<{ answer: string | undefined; words: number }>();
        expectTypeOf(task.level).toEqualTypeOf<number>();
        expectTypeOf(episode.turns.length).toEqualTypeOf<number>();
        return { correct: outcome.answer === task.answer };
      },
    });
    expectTypeOf<keyof typeof team.agents>().toEqualTypeOf<keyof typeof agents>();
    expectTypeOf(team).toExtend<Team>();
  });

  it('have a value that may be absent if an agent calls tools', () => {
    const agents = { reader: agent({ parse: integer, tools: 'plain' }), talker: agent({ tools: 'plain' }) };
    defineTeam({
      task,
      agents,
      async play({ agents: { reader, talker } }) {
        const reply = await reader('how many?', { tools: [], toolChoice: { name: 'count' }, maxTokens: 4 });
        if (reply.valid) expectTypeOf(reply.value).toEqualTypeOf<number | undefined>();
        if (reply.valid) await talker([assistant(reply), ...reply.toolCalls.map((call) => toolResult(call, '3'))]);
        // @ts-expect-error there is no such format
        agent({ tools: 'smoke signals' });
      },
      reward: () => 0,
    });
  });

  it('come from schemas of other libraries, also if these can be called', () => {
    type Other = StandardSchema<{ n: number }>;
    const [other, callable] = [{} as Other, {} as Other & ((data: unknown) => { n: number } | Error)];
    expectTypeOf(agent({ parse: other })).toEqualTypeOf<Agent<{ n: number }>>();
    expectTypeOf(agent({ parse: callable })).toEqualTypeOf<Agent<{ n: number }>>();
    expectTypeOf(agent({ parse: callable, tools: 'plain' })).toEqualTypeOf<Agent<{ n: number } | undefined>>();
    defineTeam({
      task: callable,
      agents: { counter: agent({ parse: mini.object({ n: mini.number() }) }) },
      play: async ({ task, agents: { counter } }) => {
        expectTypeOf(task).toEqualTypeOf<{ n: number }>();
        return (await counter('how many?')).value;
      },
      reward: ({ outcome }) => {
        expectTypeOf(outcome).toEqualTypeOf<{ n: number } | undefined>();
        return 0;
      },
    });
  });

  it('refuse an agent that the team does not have', () => {
    defineTeam({
      task,
      agents,
      // @ts-expect-error there is no agent 'critic'
      async play({ task, agents: { critic } }) {
        return critic(task.question);
      },
      reward: () => 0,
    });
  });

  it('refuse a task field that the schema does not have', () => {
    defineTeam({
      task,
      agents,
      // @ts-expect-error there is no field 'prompt'
      play: async ({ task, agents: { solver } }) => solver(task.prompt),
      reward: () => 0,
    });
  });

  it('refuse an outcome field that play does not return', () => {
    defineTeam({
      task,
      agents,
      play: async ({ task, agents: { solver } }) => ({ answer: (await solver(task.question)).value }),
      // @ts-expect-error the field is called 'answer'
      reward: ({ outcome, task }) => outcome.result === task.answer,
    });
  });

  it('allow every form of reward, also async', () => {
    const play = async () => ({ answer: '1' });
    defineTeam({ task, agents, play, reward: ({ outcome, task }) => (outcome.answer === task.answer ? 1 : 0) });
    defineTeam({ task, agents, play, reward: async ({ outcome, task }) => outcome.answer === task.answer });
    defineTeam({ task, agents, play, reward: () => ({ correct: 1, short: 0.1, polite: true }) });
    defineTeam({ task, agents, play, reward: () => ({ team: 1, agents: { verifier: 0.5, solver: true } }) });
    defineTeam({ task, agents, play, reward: async () => ({ team: { correct: 1, short: 0.5 } }) });
    defineTeam({ task, agents, play, reward: () => ({ team: 1, turns: [{ turn: 0, value: true }] }) });
    defineTeam({
      task,
      agents,
      play,
      reward: () => ({ team: 1, agents: { verifier: { verdict: true, early: 0.1 } } }),
    });
    defineTeam({
      task,
      agents,
      play,
      reward: () => 1,
      success: ({ outcome, task }) => outcome.answer === task.answer,
      metrics: ({ outcome }) => ({ short: outcome.answer.length < 3, length: outcome.answer.length, none: undefined }),
    });
    defineTeam({
      task,
      agents,
      play,
      reward: ({ episode: { turns } }) => ({
        team: 1,
        agents: { verifier: 0.5 },
        turns: turns.map(({ turn, valid }) => ({ turn, value: valid })),
      }),
    });
    defineTeam({
      task,
      agents,
      play,
      reward: ({ outcome }) =>
        outcome.answer === '1' ? { team: 1, agents: { verifier: 1 } } : { team: 0, agents: { solver: 0 } },
    });
  });

  it('refuse a reward for an agent that the team does not have', () => {
    const play = async () => 1;
    // @ts-expect-error there is no agent 'verifer'
    defineTeam({ task, agents, play, reward: () => ({ team: 1, agents: { verifer: 1 } }) });
    // @ts-expect-error there is no agent 'verifer', though there is a solver
    defineTeam({ task, agents, play, reward: () => ({ team: 1, agents: { solver: 1, verifer: 1 } }) });
    // @ts-expect-error not in async rewards either
    defineTeam({ task, agents, play, reward: async () => ({ team: 1, agents: { solver: 1, verifer: 1 } }) });
    // @ts-expect-error nor in one of several branches
    // biome-ignore format: the error is on this line
    defineTeam({ task, agents, play, reward: ({ outcome }) => (outcome === 1 ? { team: 1 } : { team: 0, agents: { verifer: 1 } }) });
    // @ts-expect-error the reward of a turn is a number
    defineTeam({ task, agents, play, reward: () => ({ team: 1, turns: [{ turn: 0, value: 'good' }] }) });
    // @ts-expect-error a metric is a number
    defineTeam({ task, agents, play, reward: () => 1, metrics: () => ({ short: 'yes' }) });
    // @ts-expect-error a reward is a number
    defineTeam({ task, agents, play, reward: () => 'good' });
  });
});
