import type { TextBackend, TextRequest } from '@drmas/engine/contract';
import { symbolsTokenizer } from '@drmas/engine/internal/model/tokenizers/symbols';
import { RandomStream, randomKey } from '@drmas/engine/math';
import { assistant, type Tokenizer, turnReward, user } from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { takesTime, timeForMishaps } from '../../../test/support/time-and-chance.js';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { integer } from '../team/parsers.js';
import { type Ask, defineTeam, type PlayContext, type Reward, type Team } from '../team/team.js';
import { playEpisode } from './play-episode.js';
import type { RolloutContext } from './rollout-context.js';

const agents = {
  counter: agent({ system: 'Count.', parse: integer, invalidPenalty: 0.25 }),
  talker: agent(),
};
type Play = PlayContext<{ n: number }, typeof agents>;
type Playing = (context: Play) => Promise<unknown>;

const teamOf = (play: Playing, reward: () => Reward | Promise<Reward> = () => 1): Team<{ n: number }> =>
  defineTeam({ task: z.object({ n: z.number() }), agents, play, reward });

const task = { id: 'seven', data: { n: 7 } };

const played = async (
  team: Team<{ n: number }>,
  script: Script,
  changes: Partial<RolloutContext> = {},
  signal?: AbortSignal,
) => {
  const sampler = scriptedSampler(script);
  const context = scriptedContext(team as Team, sampler, changes);
  const request = { team, task, sample: 2, phase: 'training', step: 5, signal } as const;
  return { episode: await playEpisode(context, request), sampler };
};

const unhandled: unknown[] = [];
const remember = (reason: unknown) => unhandled.push(reason);
beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', remember);
});
afterEach(async () => {
  await timeForMishaps(1);
  process.off('unhandledRejection', remember);
  expect(unhandled).toEqual([]);
});

describe('a played episode', () => {
  it('records each call as a turn, with exactly the ids that were sampled', async () => {
    const team = teamOf(async ({ task, agents: { counter, talker } }) => {
      const first = await counter(`${task.n}`);
      const second = await talker([user('hm'), assistant(first.text)]);
      return { first, second };
    });
    const { episode, sampler } = await played(team, ({ policy }) => (policy === 'counter' ? 'seven' : 'yes'));
    const { chat, encode, stopTokens } = bytesTokenizer();
    expect(episode.turns).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f]{16}$/),
        agent: 'counter',
        policy: 'counter',
        policyVersion: 3,
        turn: 0,
        call: 0,
        messages: [{ role: 'system', content: 'Count.' }, user('7')],
        prompt: chat([{ role: 'system', content: 'Count.' }, user('7')]),
        response: [...encode('seven'), ...stopTokens],
        logprobs: [-1, -1, -1, -1, -1, -1],
        temperature: 1,
        finishReason: 'stop',
        text: 'seven',
        value: undefined,
        valid: false,
        penalty: 0.25,
      },
      expect.objectContaining({
        agent: 'talker',
        turn: 1,
        call: 0,
        text: 'yes',
        value: 'yes',
        valid: true,
        penalty: 0,
      }),
    ]);
    const [first, second] = episode.turns.map(({ id, text }) => ({ id, text, content: text, toolCalls: [] }));
    expect(episode.outcome).toEqual({
      first: { ...first, finishReason: 'stop', turn: 0, valid: false, value: undefined },
      second: { ...second, finishReason: 'stop', turn: 1, valid: true, value: 'yes' },
    });
    expect(episode).toMatchObject({ task, sample: 2, score: { team: 1, agents: {}, parts: {} } });
    expect(episode).not.toHaveProperty('failure');
    expect(sampler.calls.map(({ request }) => request.prompt)).toEqual(episode.turns.map(({ prompt }) => prompt));
  });

  it('has a random stream for decisions of the team, named by seed, phase, step, task and sample', async () => {
    const drawn = async (changes: Partial<RolloutContext> = {}) => {
      const team = teamOf(async ({ random }) => [random.uniform(), random.uniform()]);
      return (await played(team, () => '4', changes)).episode.outcome;
    };
    const stream = new RandomStream('play', 1, 'training', 5, 'seven', 2);
    expect(await drawn()).toEqual([stream.uniform(), stream.uniform()]);
    expect(await drawn({ seed: 2 })).not.toEqual(await drawn());
  });

  it('repeats an earlier reply with its own ids, without the stop token, only if the text is equal', async () => {
    // 'ab' is one symbol or two; the tokenizer itself would always write it as one.
    const spec = { symbols: ['.', '?', 'a', 'b', 'ab'], stop: '.', endOfUser: '?', endOfAssistant: '.' };
    const tokenizer = symbolsTokenizer({ type: 'symbols', ...spec });
    const twin = symbolsTokenizer({ type: 'symbols', ...spec });
    const other = symbolsTokenizer({ type: 'symbols', ...spec, symbols: ['.', '?', 'b', 'a', 'ab'] });
    const names = ['first', 'second', 'third'] as const;
    const threeAgents = { first: agent(), second: agent(), third: agent() };
    const team = defineTeam({
      task: z.object({ n: z.number() }),
      agents: threeAgents,
      async play({ agents: { first, second, third } }) {
        const { text } = await first('a');
        await first([assistant(text)]);
        await second([assistant(text)]);
        await third([assistant(text)]);
        await first([user(text), assistant(`${text}b`)]);
      },
      reward: () => 0,
    });
    const sampler = scriptedSampler(
      ({ index, request }) => (index === 0 ? [2, 3, ...request.stopTokens] : 'a'),
      tokenizer,
    );
    const context = scriptedContext(team as Team, sampler);
    const tokenizers = [tokenizer, twin, other] as const;
    const policies = Object.fromEntries(
      names.map((name, i) => [name, { ...sampler.policy(name, 100), tokenizer: tokenizers[i] as Tokenizer }]),
    );
    await playEpisode({ ...context, policies }, { team: team as Team, task, sample: 0, phase: 'evaluation', step: 0 });
    expect(sampler.calls.map(({ request }) => request.prompt)).toEqual([
      [2, 1],
      [2, 3, 0], // the same policy: as it was written
      [2, 3, 0], // an equal vocabulary: as it was written
      [4, 0], // another vocabulary: ids of the first mean something else there
      [4, 1, 4, 3, 0], // a user message, and another text
    ]);
  });

  it.each<[string, Reward, unknown]>([
    ['a number', 0.5, { team: 0.5, agents: {}, parts: {} }],
    ['a truth', true, { team: 1, agents: {}, parts: {} }],
    ['named parts', { correct: true, short: 0.25 }, { team: 1.25, agents: {}, parts: { correct: 1, short: 0.25 } }],
    [
      'rewards of single agents',
      { team: 1, agents: { counter: 0.5 } },
      { team: 1, agents: { counter: 0.5 }, parts: {} },
    ],
    ['parts and agents', { team: { a: 1, b: 2 }, agents: {} }, { team: 3, agents: {}, parts: { a: 1, b: 2 } }],
  ])('is scored by %s', async (_, reward, score) => {
    const { episode } = await played(
      teamOf(
        async () => 1,
        async () => reward,
      ),
      () => '1',
    );
    expect(episode.score).toEqual(score);
  });

  it('sends text to an endpoint, and reads its answer as text again, without inventing ids', async () => {
    const team = teamOf(async ({ agents: { counter, talker } }) => {
      const talk = await talker('how many?');
      return (await counter([user('?'), assistant(talk.text)])).value;
    });
    const requests: TextRequest[] = [];
    const endpoint: TextBackend = {
      complete: async (request) => {
        requests.push(request);
        return { text: '12', finishReason: 'length', responseTokens: 1 };
      },
    };
    const sampler = scriptedSampler(() => '13');
    const base = scriptedContext(team as Team, sampler);
    const talker = { ...base.agents.talker, frozen: true } as RolloutContext['agents'][string];
    const context = {
      ...base,
      agents: { ...base.agents, talker },
      policies: { ...base.policies, talker: { endpoint } },
    };
    const episode = await playEpisode(context, { team, task, sample: 2, phase: 'training', step: 5 });
    expect(episode.failure).toBeUndefined();
    const { sampling } = talker;
    expect(requests).toEqual([{ ...sampling, messages: [user('how many?')], seed: expect.any(Number) }]);
    const key = randomKey(1, 'training', 5, 'seven', 2, 'talker', ...randomKey('user', 'how many?'), 0);
    expect(requests[0]?.seed).toBe(Math.floor((key[0] ?? 0) / 2));
    expect(episode.turns[0]).toMatchObject({
      agent: 'talker',
      text: '12',
      value: '12',
      frozen: true,
      endpoint: { responseTokens: 1 },
      finishReason: 'length',
      prompt: [],
      response: [],
      logprobs: [],
    });
    const { chat } = bytesTokenizer();
    expect(sampler.calls[0]?.request.prompt).toEqual(chat([...(episode.turns[1]?.messages ?? [])]));
    expect(episode.turns[1]).not.toHaveProperty('frozen');
    expect(episode.outcome).toBe(13);
  });

  it('has turns that earned something for themselves, and others', async () => {
    const { episode } = await played(
      teamOf(
        async ({ agents: { counter, talker } }) => [await counter('a'), await talker('b'), await counter('c')],
        () => ({
          team: 1,
          agents: { counter: 0.5 },
          turns: [
            { turn: 2, value: 0.25 },
            { turn: 1, value: true },
          ],
        }),
      ),
      () => '1',
    );
    expect(episode.score).toEqual({ team: 1, agents: { counter: 0.5 }, parts: {} });
    expect(episode.turns.map(({ stepReward }) => stepReward)).toEqual([undefined, 1, 0.25]);
    expect(episode.turns.map((turn) => 'stepReward' in turn)).toEqual([false, true, true]);
    expect(episode.turns.map((turn) => turnReward(episode, turn))).toEqual([0.5, 2, 0.75]);
  });

  it('keeps its turns as they were if the program changes replies and messages later', async () => {
    const planner = agent({ tools: 'plain', parse: z.object({ steps: z.array(z.string()) }) });
    const look = { name: 'look', parameters: { type: 'object', properties: { n: { type: 'number' } } } };
    const planning = defineTeam({
      task: z.object({ n: z.number() }),
      agents: { planner },
      async play({ agents: { planner } }) {
        const plan = await planner('plan');
        while (plan.value?.steps.shift() !== undefined);
        const calling = await planner('call', { tools: [look] });
        const messages = [user('call'), assistant(calling), user('so?')];
        await planner(messages);
        for (const { toolCalls = [] } of [calling, ...messages])
          for (const call of toolCalls) Object.assign(call, { arguments: '{}' });
      },
      reward: () => 1,
    }) as unknown as Team<{ n: number }>;
    const lines = ['{"steps": ["a", "b"]}', '@look(1)', '{"steps": []}'];
    const { episode } = await played(planning, ({ index }) => lines[index] ?? '');
    const [plan, call, last] = episode.turns;
    expect(plan?.value).toEqual({ steps: ['a', 'b'] });
    for (const toolCalls of [call?.toolCalls, last?.messages[1]?.toolCalls])
      expect(toolCalls).toMatchObject([{ arguments: '{"n":1}' }]);
  });

  it('gives the program the very value that the parser returned', async () => {
    const moves = [{ name: 'left' }, { name: 'right' }];
    const mover = agent({ parse: (text) => moves.find(({ name }) => name === text) });
    const moving = defineTeam({
      task: z.object({ n: z.number() }),
      agents: { mover },
      play: async ({ agents: { mover } }) => {
        const { value } = await mover('where?');
        return value && moves.indexOf(value);
      },
      reward: () => 1,
    }) as unknown as Team<{ n: number }>;
    const { episode } = await played(moving, () => 'right');
    expect(episode.outcome).toBe(1);
  });

  it('keeps the observation that a call names', async () => {
    const { episode } = await played(
      teamOf(async ({ agents: { counter } }) => [await counter('a', { observation: 'start' }), await counter('b')]),
      () => '1',
    );
    expect(episode.turns.map((turn) => ['observation' in turn, turn.observation])).toEqual([
      [true, 'start'],
      [false, undefined],
    ]);
    const wrong = await played(
      teamOf(async ({ agents: { counter } }) => counter('a', { observation: 7 as unknown as string })),
      () => '1',
    );
    expect(wrong.episode.failure).toEqual({
      reason: 'error',
      agent: 'counter',
      message: 'counter.observation: expected a string, got 7',
    });
  });
});

describe('concurrent calls', () => {
  /** A play that branches: chains of calls that run side by side, each next question made of the last answer. */
  const branching: Playing = async ({ agents: { counter, talker } }) => {
    const chain = async (ask: Ask, name: string, length: number) => {
      let text = name;
      for (let i = 0; i < length; i++) text = (await ask(`${text}/`)).text;
      return text;
    };
    const first = await Promise.race([chain(counter, 'r', 1), chain(talker, 's', 2)]);
    const all = await Promise.all([
      chain(counter, 'a', 3),
      chain(talker, 'b', 2),
      (async () => {
        const [left] = await Promise.all([talker('c'), talker('d')]);
        return chain(counter, left.text, 2);
      })(),
    ]);
    return { first, all };
  };

  it('take the same ordinals and keys in any order of answers', async () => {
    const reference = await played(teamOf(branching), ({ prompt, request }) => `${prompt.length}${request.key[0] % 7}`);
    const orders = new Set<string>();
    const delays = fc.array(fc.constantFrom(0, 0, 1, 2, 3), { minLength: 20, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(delays, async (delay) => {
        const finished: number[] = [];
        const { episode, sampler } = await played(teamOf(branching), async ({ prompt, request, index }) => {
          for (let turns = delay[index] ?? 0; turns > 0; turns--) await new Promise(setImmediate);
          finished.push(index);
          return `${prompt.length}${request.key[0] % 7}`;
        });
        orders.add(finished.join());
        expect(episode).toEqual(reference.episode);
        expect(sampler.calls.map(({ request }) => request)).toEqual(reference.sampler.calls.map((a) => a.request));
      }),
      { numRuns: 40, seed: 1 },
    );
    expect(orders.size).toBeGreaterThan(10); // the answers really came in different orders
    expect(reference.episode.turns.map(({ turn }) => turn)).toEqual(reference.episode.turns.map((_, i) => i));
  });

  it('that no code waited for are aborted when the episode ends, and are no turns', async () => {
    let stray: Promise<unknown> = Promise.resolve();
    const team = teamOf(async ({ agents: { counter, talker } }) => {
      stray = talker('never mind').then(() => counter('5'));
      stray.catch(() => {});
      return (await counter('7')).value;
    });
    const signals: (AbortSignal | undefined)[] = [];
    const { episode, sampler } = await played(
      team,
      async ({ policy, signal }) => {
        signals.push(signal);
        if (policy === 'talker') await new Promise((_, reject) => signal?.addEventListener('abort', reject));
        return '7';
      },
      { timeoutMs: 20 },
    );
    // Replies come in the order of the calls: this episode waits for a talker that never answers.
    expect(episode.failure?.reason).toBe('timeout');
    expect(signals.every((signal) => signal?.aborted)).toBe(true);
    await expect(stray).rejects.toThrow('the episode is over: not over after 20 ms');
    expect(sampler.calls).toHaveLength(2);
  });

  it('made after the one that decides are dropped when play returns', async () => {
    const team = teamOf(async ({ agents: { counter, talker } }) => {
      const first = counter('7');
      void talker('never mind');
      return (await first).value;
    });
    let aborted = false;
    const { episode } = await played(team, async ({ policy, signal }) => {
      if (policy === 'talker')
        await new Promise((_, reject) =>
          signal?.addEventListener('abort', () => {
            aborted = true;
            reject(signal.reason);
          }),
        );
      return '7';
    });
    expect(episode.failure).toBeUndefined();
    expect(episode.outcome).toBe(7);
    expect(episode.turns.map(({ agent }) => agent)).toEqual(['counter']);
    expect(aborted).toBe(true);
  });
});

describe('a failed episode', () => {
  const asks: Playing = async ({ agents: { counter } }) => {
    await counter('1');
    await counter('2');
  };

  it.each<[string, string, Playing, Partial<RolloutContext>, string]>([
    [
      'play throws',
      'error',
      async ({ agents: { counter } }) => {
        await counter('1');
        throw new Error('no idea');
      },
      {},
      'no idea',
    ],
    [
      'a prompt cannot be tokenised',
      'error',
      async ({ agents: { counter } }) => {
        await counter('1');
        await counter('\ud800');
      },
      {},
      'counter: ',
    ],
    ['it makes too many calls', 'too-many-turns', asks, { maxTurns: 1 }, 'more than 1 calls'],
  ])('reports that %s, and keeps its turns', async (_, reason, play, changes, message) => {
    const { episode } = await played(teamOf(play), () => '1', changes);
    expect(episode.failure?.reason).toBe(reason);
    expect(episode.failure?.message).toContain(message);
    expect(episode.turns).toHaveLength(1);
    expect(episode).toMatchObject({ outcome: undefined, score: { team: 0, agents: {}, parts: {} } });
  });

  it('is overlong when prompt and response might not fit the context, and not when they just do', async () => {
    const team = teamOf(asks);
    const length = bytesTokenizer().chat([{ role: 'system', content: 'Count.' }, user('1')]).length + 16;
    const fitting = (context: number) => {
      const sampler = scriptedSampler(() => '1');
      const policies = { counter: sampler.policy('counter', context), talker: sampler.policy('talker', context) };
      const request = { team, task, sample: 0, phase: 'training', step: 0 } as const;
      return playEpisode(scriptedContext(team as Team, sampler, { policies }), request);
    };
    expect((await fitting(length)).failure).toBeUndefined();
    expect((await fitting(length - 1)).failure).toEqual({
      reason: 'overlong',
      agent: 'counter',
      message: `counter: a prompt of ${length - 16} tokens and up to 16 more exceed the context of ${length - 1}`,
    });
  });

  it('shows the place where a parser threw, without frames of the engine', async () => {
    const parse = () => {
      throw new Error('no such mark');
    };
    const agents = { counter: agent({ parse }), talker: agent() };
    const team = defineTeam({
      task: z.object({ n: z.number() }),
      agents,
      play: ({ agents: { counter } }) => counter('1'),
      reward: () => 1,
    });
    const { failure } = (await played(team, () => '1')).episode;
    expect(failure).toMatchObject({
      reason: 'invalid-output',
      message: expect.stringMatching(/: counter: no such mark$/),
    });
    expect(failure?.stack).toMatch(/^ +at .*play-episode\.test\.ts:\d+:\d+\)?$/);
  });

  it('is of the backend when the sampler fails, in the order of the calls', async () => {
    const team = teamOf(async ({ agents: { counter, talker } }) => Promise.all([counter('1'), talker('2')]));
    const { episode } = await played(team, async ({ policy }) => {
      if (policy === 'talker') throw new Error('out of memory');
      await takesTime(5);
      return '1';
    });
    expect(episode.failure).toEqual({ reason: 'backend', message: 'talker: out of memory', agent: 'talker' });
    expect(episode.turns.map(({ agent }) => agent)).toEqual(['counter']);
  });

  it('times out, and aborts the work that it waits for', async () => {
    let playSignal: AbortSignal | undefined;
    const team = teamOf(async ({ signal }) => {
      playSignal = signal;
      await new Promise(() => {});
    });
    const { episode } = await played(team, () => '1', { timeoutMs: 5 });
    expect(episode.failure).toEqual({ reason: 'timeout', message: 'not over after 5 ms' });
    expect(playSignal?.aborted).toBe(true);
  });

  it.each<[string, () => Reward | Promise<Reward>, string | RegExp]>([
    ['throws', () => Promise.reject(new Error('judge is down')), 'judge is down'],
    ['is not finite', () => Number.NaN, /^the reward is NaN, expected a finite number: something divides 0 by 0/],
    ['has a part that is not finite', () => ({ a: 1 / 0 }), "the part 'a' is Infinity, expected a finite number"],
    [
      'is no reward',
      () => undefined as unknown as Reward,
      /^the reward is undefined, expected a finite number: a branch returns nothing/,
    ],
    [
      'names a stranger',
      () => ({ team: 1, agents: { critic: 1 } }),
      "expected one of the agents counter, talker, got 'critic'",
    ],
    [
      'names a turn that was not played',
      () => ({ team: 1, turns: [{ turn: 2, value: 1 }] }),
      'there is no turn 2 to reward, the episode has 2',
    ],
    [
      'names a turn twice',
      () => ({
        team: 1,
        turns: [
          { turn: 1, value: 1 },
          { turn: 1, value: 0 },
        ],
      }),
      'turn 1 is rewarded twice',
    ],
    [
      'gives a turn a reward that is not finite',
      () => ({ team: 1, turns: [{ turn: 1, value: Number.NaN }] }),
      /^the reward of turn 1 is NaN, expected a finite number/,
    ],
    [
      'has turns that are no list',
      () => ({ team: 1, turns: 3 }) as unknown as Reward,
      'the rewards of turns are 3, expected a list',
    ],
  ])('is of the reward when the reward %s', async (_, reward, message) => {
    const { episode } = await played(teamOf(asks, reward), () => '1');
    expect(episode.failure).toMatchObject({ reason: 'reward', message: expect.stringMatching(message) });
    expect(episode.turns).toHaveLength(2);
    expect(episode.score.team).toBe(0);
  });

  it('is not made of a reward that is rejected after the success has thrown, if both are right the next time', async () => {
    let tries = 0;
    const rejected = async () => {
      await timeForMishaps(1);
      throw new Error('no judge');
    };
    const reward = () => (++tries === 1 ? rejected() : 1);
    const success = () => {
      if (tries === 1) throw new Error('no answer');
      return true;
    };
    const team = { ...teamOf(asks, reward), success };
    const { episode } = await played(team, () => '1', { rewardRetries: 1 });
    expect([tries, episode.failure, episode.score]).toMatchObject([2, undefined, { team: 1, success: 1 }]);
  });

  it('is not made of an interruption: that ends the run', async () => {
    const controller = new AbortController();
    const reason = new Error('Ctrl-C');
    const script: Script = ({ signal }) => {
      setImmediate(() => controller.abort(reason));
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    };
    await expect(played(teamOf(asks), script, {}, controller.signal)).rejects.toBe(reason);
    await expect(played(teamOf(asks), () => '1', {}, controller.signal)).rejects.toBe(reason);
  });

  it('does not hide that an agent has no policy', async () => {
    await expect(played(teamOf(asks), () => '1', { policies: {} })).rejects.toThrow("agent 'counter' has no policy");
  });
});
