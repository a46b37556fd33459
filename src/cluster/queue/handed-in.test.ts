import type { TextBackend } from '@drmas/engine/contract';
import { assistant, type Episode, type Message, type Turn, user } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { playEpisode } from '../../teams/rollout/play-episode.js';
import type { PlayRequest } from '../../teams/rollout/remote-speakers.js';
import type { RolloutContext } from '../../teams/rollout/rollout-context.js';
import { agent } from '../../teams/team/agent.js';
import { defineTeam, type Team } from '../../teams/team/team.js';
import { AnsweredCalls, type AwaitedEpisode, faultOf } from './handed-in.js';
import { packed, unpacked } from './wire.js';

const team = defineTeam({
  task: z.unknown(),
  agents: { solver: agent({ parse: (text) => /\d/.exec(text)?.[0] }), helper: agent(), judge: agent() },
  async play({ agents: { solver, helper }, log }) {
    const first = await solver('1+1');
    const [second] = await Promise.all([solver(`again ${first.text}`), helper('hint'), solver('1+1')]);
    log('length', second.text.length);
    return { text: second.text };
  },
  async reward({ agents: { judge } }) {
    const { text } = await judge('is it right?');
    return { team: { right: text.length, extra: 0.5 }, agents: { helper: 0.25 }, turns: [{ turn: 0, value: 0.125 }] };
  },
  success: () => 0.5,
}) as unknown as Team;

const request: PlayRequest = { task: { id: 'a', data: { n: 1 } }, sample: 2, phase: 'training', step: 7 };

/** An episode as a worker plays and packs it, with the answers of the run. */
async function played(more: Partial<PlayRequest> = {}, of: Team = team, changes: Partial<RolloutContext> = {}) {
  const answered = new AnsweredCalls();
  const sampler = scriptedSampler(({ request: { key } }) => `${key[0] % 97}`);
  const base = scriptedContext(of, sampler, { maxOutcomeBytes: 1000, maxTurns: 8, ...changes });
  const { solver, helper, judge } = base.agents as Required<RolloutContext['agents']>;
  const endpoint: TextBackend = {
    complete: async ({ seed }) => ({
      text: `seed ${seed}`,
      reasoning: 'hm',
      finishReason: 'stop',
      promptTokens: 3,
      responseTokens: 2,
    }),
  };
  const context: RolloutContext = {
    ...base,
    agents: {
      solver: { ...solver, invalidPenalty: 0.1, callCost: 0.25, judges: false },
      helper: { ...helper, policy: 'solver', judges: false },
      judge: { ...judge, frozen: true },
    } as RolloutContext['agents'],
    policies: { ...base.policies, judge: { endpoint } },
  };
  const heard = Object.entries(context.policies).map(([name, speaker]) => {
    const remember =
      <Q, A>(act: (spoken: Q, signal?: AbortSignal) => Promise<A>) =>
      async (spoken: Q, signal?: AbortSignal) => {
        answered.begin();
        const answer = await act(spoken, signal);
        answered.add(name, spoken as never, answer as never);
        return answer;
      };
    if ('endpoint' in speaker) return [name, { endpoint: { complete: remember(speaker.endpoint.complete as never) } }];
    return [name, { ...speaker, generate: remember(speaker.generate as never) }];
  });
  const wanted = { ...request, ...more };
  const episode = await playEpisode({ ...context, policies: Object.fromEntries(heard) }, { ...wanted, team: of });
  if (of === team) expect(episode.failure).toBeUndefined();
  const awaited: AwaitedEpisode = { context, request: wanted, answered };
  return { episode: unpacked(packed(episode)) as Episode, awaited };
}

/** The episode with another turn in the place of one of its turns. */
const withTurn = (episode: Episode, at: number, change: (turn: Turn) => unknown): unknown => ({
  ...episode,
  turns: episode.turns.map((turn, i) => (i === at ? change(turn) : turn)),
});
const withField = (episode: Episode, field: string, value: unknown, at = 0) =>
  withTurn(episode, at, (turn) => ({ ...turn, [field]: value }));
const withScore = (episode: Episode, score: object): unknown => ({ ...episode, score: { ...episode.score, ...score } });
const withKey = (name: string, value: unknown) => JSON.parse(`{"${name}":${JSON.stringify(value)}}`);

/** Forged episodes, each with its fault. */
const forgeries: Record<string, readonly [forge: (episode: Episode) => unknown, fault: RegExp]> = {
  'an empty object': [() => ({}), /task: is required/],
  null: [() => null, /expected an object, got null/],
  'a text': [() => 'episode', /expected an object/],
  'turns that are no list': [(e) => ({ ...e, turns: { length: 3 } }), /turns: expected an array/],
  'the agent __proto__': [(e) => withField(e, 'agent', '__proto__'), /no agent '__proto__'/],
  'the agent constructor': [(e) => withField(e, 'agent', 'constructor'), /no agent 'constructor'/],
  'another agent of the same policy': [
    (e) => withField(e, 'agent', 'helper'),
    /turn 0: (penalty|'helper' did not make)/,
  ],
  'another policy': [(e) => withField(e, 'policy', 'judge'), /turn 0: policy is "judge", expected "solver"/],
  'an id beyond the vocabulary': [
    (e) => withTurn(e, 0, (t) => ({ ...t, response: [2 ** 32 + 5, ...t.response.slice(1)] })),
    /response\[0\] is 4294967301/,
  ],
  'a negative id': [(e) => withTurn(e, 0, (t) => ({ ...t, response: [-1, ...t.response.slice(1)] })), /response\.0/],
  'a fractional id': [(e) => withTurn(e, 0, (t) => ({ ...t, response: [1.5, ...t.response.slice(1)] })), /response\.0/],
  'other tokens': [(e) => withTurn(e, 0, (t) => ({ ...t, response: t.response.map((id) => id ^ 1) })), /response\[0\]/],
  'another prompt': [(e) => withTurn(e, 0, (t) => ({ ...t, prompt: t.prompt.with(-1, 7) })), /turn 0: prompt\[/],
  'no log-probs': [(e) => withTurn(e, 0, ({ logprobs: _, ...turn }) => turn), /logprobs: is required/],
  'too few log-probs': [(e) => withTurn(e, 0, (t) => ({ ...t, logprobs: t.logprobs.slice(1) })), /logprobs has/],
  'log-probs that are NaN': [
    (e) => withTurn(e, 0, (t) => ({ ...t, logprobs: t.logprobs.map(() => Number.NaN) })),
    /logprobs\.0/,
  ],
  'log-probs above 0': [
    (e) => withTurn(e, 0, (t) => ({ ...t, logprobs: t.logprobs.map(() => 2) })),
    /logprobs\[0\] is 2, expected -1/,
  ],
  'another version': [(e) => withField(e, 'policyVersion', 4), /policyVersion is 4, expected 3/],
  'another temperature': [(e) => withField(e, 'temperature', 0.5), /temperature is 0\.5, expected 1/],
  'another text': [(e) => withField(e, 'text', 'right'), /text is "right"/],
  'a bonus as penalty': [(e) => withField(e, 'penalty', -5), /penalty is -5/],
  'a trained turn as frozen': [(e) => withField(e, 'frozen', true), /frozen is true, expected false/],
  'a frozen turn as trained': [(e) => withField(e, 'frozen', undefined, 4), /frozen is false, expected true/],
  'a judge that may not judge': [(e) => withField(e, 'judging', true), /'solver' may not judge/],
  'another text of an endpoint': [(e) => withField(e, 'text', 'yes', 4), /turn 4: text is "yes"/],
  "other data of an endpoint's": [
    (e) => withField(e, 'endpoint', { promptTokens: 3, responseTokens: 2, providerData: { signature: 'x' } }, 4),
    /turn 4: the endpoint's data/,
  ],
  'tokens of an endpoint': [(e) => withField(e, 'response', [1], 4), /turn 4: response has 1/],
  'a turn twice': [(e) => ({ ...e, turns: [e.turns[0], { ...e.turns[0], turn: 1, call: 1 }] }), /has the id .* too/],
  'turns in another order': [(e) => ({ ...e, turns: e.turns.toReversed() }), /in the order of their calls/],
  'a turn that was never sampled': [(e) => withField(e, 'id', '00000000000000ff'), /sampled nothing for the call/],
  'too many turns': [
    (e) => ({ ...e, turns: Array.from({ length: 9 }, () => e.turns[0]) }),
    /9 turns, expected at most 8/,
  ],
  'a turn number of a later call': [(e) => withField(e, 'turn', 99, 4), /at most 13/],
  'another task': [(e) => ({ ...e, task: { id: 'b', data: {} } }), /task\.id is "b", expected "a"/],
  'another sample': [(e) => ({ ...e, sample: 3 }), /sample is 3, expected 2/],
  'a reward of 1e308': [(e) => withScore(e, { team: 1e308 }), /the reward is 1e\+308/],
  'a reward as text': [(e) => withScore(e, { team: '1' }), /score\.team: expected a number/],
  'a reward of NaN': [(e) => withScore(e, { team: Number.NaN }), /score\.team/],
  'the reward of a stranger': [(e) => withScore(e, { agents: { stranger: 1 } }), /no agent 'stranger'/],
  'the reward of __proto__': [(e) => withScore(e, { agents: withKey('__proto__', 1) }), /no agent '__proto__'/],
  'a part as text': [(e) => withScore(e, { parts: { right: '9' } }), /right is NaN/],
  'a success of 2': [(e) => withScore(e, { success: 2 }), /score\.success/],
  'a metric without end': [(e) => withScore(e, { metrics: { far: Number.POSITIVE_INFINITY } }), /far is Infinity/],
  'a huge reward of a turn': [(e) => withField(e, 'stepReward', 1e300), /turn 0: the reward is 1e\+300/],
  'a reward of a failed episode': [
    (e) => ({ ...e, failure: { reason: 'error', message: 'x' } }),
    /failed episode earns -0\.75, and no reward/,
  ],
  'an unknown failure': [(e) => ({ ...e, failure: { reason: 'bored', message: 'x' } }), /failure\.reason/],
  'a large outcome': [(e) => ({ ...e, outcome: 'x'.repeat(2000) }), /outcome is larger/],
  'a log without names': [(e) => ({ ...e, log: [{ value: 1 }] }), /log\.0\.name/],
};

describe('an episode that a worker hands in', () => {
  it('is taken as the worker played it: of several agents, an endpoint, a judge, in parallel', async () => {
    for (const more of [
      {},
      { phase: 'evaluation', sampling: { temperature: 0 } },
      { versions: { solver: 3 } },
    ] as const) {
      const { episode, awaited } = await played(more);
      expect(episode.turns.map(({ agent }) => agent)).toEqual(['solver', 'solver', 'helper', 'solver', 'judge']);
      expect(faultOf(episode, awaited)).toBeUndefined();
    }
  });

  it('is taken if it repeats turns of another episode', async () => {
    const { episode: before } = await played();
    const replay = { number: 1, fixed: before.turns.slice(0, 2) };
    const { episode, awaited } = await played({ replay });
    expect(episode.turns.slice(0, 2).map(({ id }) => id)).toEqual(replay.fixed.map(({ id }) => id));
    expect(faultOf(episode, awaited)).toBeUndefined();
    expect(faultOf(withField(episode, 'response', [1, 2]), awaited)).toMatch(/turn 0: response has 2/);
    expect(faultOf(withField(episode, 'text', 'x'), awaited)).toMatch(/turn 0: text is "x"/);
  });

  it('is taken if it failed, with the turns until then', async () => {
    const { episode, awaited } = await played();
    const failure = { reason: 'error', message: 'a bug' };
    const score = { team: -0.25, agents: {}, parts: { calls: -0.25 }, success: 0 };
    const failed = { ...episode, turns: episode.turns.slice(0, 1), outcome: undefined, score, failure };
    const { stepReward: _, ...turn } = failed.turns[0] as Turn;
    expect(faultOf({ ...failed, turns: [turn] }, awaited)).toBeUndefined();
  });

  type Ask<Reply = { text: string; value: unknown }> = (
    input: string | readonly Message[],
    options?: object,
  ) => Promise<Reply>;
  const asked = (agents: unknown, name: string) => (agents as Record<string, Ask>)[name] as Ask;
  /** The team with another `play` or other functions, which a worker plays as it does the team's own. */
  const others: Readonly<Record<string, readonly [Partial<Team>, Partial<PlayRequest>?]>> = {
    'play throws': [
      {
        play: async ({ agents }) => {
          await asked(agents, 'solver')('a');
          throw new Error('a bug');
        },
      },
    ],
    'a parser throws': [
      { agents: { ...team.agents, solver: agent({ parse: (text) => JSON.parse(`{${text}`) }) } as never },
    ],
    'play makes too many calls': [
      {
        play: async ({ agents }) => {
          for (;;) await asked(agents, 'solver')('a');
        },
      },
    ],
    'the reward throws': [
      {
        reward: () => {
          throw new Error('no score');
        },
      },
    ],
    'the reward asks more judges than play may make calls': [
      {
        reward: async ({ agents }) => {
          const votes = await Promise.all(Array.from({ length: 12 }, () => asked(agents, 'judge')('is it right?')));
          return votes.length / 12;
        },
      },
    ],
    'a rewardGroup asks about each pair': [
      {
        rewardGroup: async ({ agents, episodes }) => {
          for (const a of episodes) for (const b of episodes) await asked(agents, 'judge')(`${a.sample} ${b.sample}`);
          return episodes.map((_, i) => i);
        },
      },
      { judged: Array.from({ length: 5 }, (_, sample) => ({ sample, outcome: sample, turns: [] })) },
    ],
    'a frozen agent that thinks reads its own answer again': [
      {
        play: async ({ agents }) => {
          const judge = agents.judge as unknown as Ask<Parameters<typeof assistant>[0] & object>;
          const first = await judge('is it right?');
          await judge([user('is it right?'), assistant(first), user('really?')]);
        },
      },
    ],
    'play awaits no call': [
      {
        play: async ({ agents }) => {
          void asked(agents, 'solver')('a');
          void asked(agents, 'helper')('b');
        },
      },
    ],
    'play gives a call up': [
      {
        play: async ({ agents }) => {
          const controller = new AbortController();
          const call = asked(agents, 'solver')('a', { signal: controller.signal }).catch(() => {});
          controller.abort(new Error('enough'));
          await call;
          await asked(agents, 'solver')('a');
        },
      },
    ],
    'the reward is no number': [{ reward: () => Number.NaN }],
    'the success is no share': [{ success: () => 2 }],
  };

  it.each(Object.entries(others))('is taken as the worker played it: %s', async (_, [functions, more]) => {
    for (const changes of [{}, { maxTurns: 4 }, { partWeights: { calls: 0.5 } }] as const) {
      const { episode, awaited } = await played(more, { ...team, ...functions } as Team, changes);
      expect(faultOf(episode, awaited)).toBeUndefined();
    }
  });

  it.each(Object.entries(forgeries))('is refused by name if it is forged: %s', async (_, [forge, fault]) => {
    const { episode, awaited } = await played();
    expect(faultOf(forge(episode), awaited)).toMatch(fault);
  });

  it('is refused if the worker asked with settings or keys of its own', async () => {
    const spoken = async (change: object) => {
      const { episode, awaited } = await played();
      const answered = new AnsweredCalls();
      const [turn] = episode.turns as [Turn];
      const [call] = awaited.answered.of(turn.id as string);
      if (call === undefined) throw new Error('the call was answered');
      answered.add(call.policy, { ...call.request, ...change } as never, call.answer);
      const alone = { ...episode, turns: [turn] };
      return faultOf(alone, { ...awaited, answered });
    };
    expect(await spoken({})).toBeUndefined();
    expect(await spoken({ topK: 1 })).toMatch(/the request's topK is 1, expected 0/);
    expect(await spoken({ temperature: 0 })).toMatch(/the request's temperature is 0, expected 1/);
    expect(await spoken({ maxTokens: 1000 })).toMatch(/the request's maxTokens is 1000/);
    expect(await spoken({ version: 2 })).toMatch(/the request's version is 2, expected undefined/);
    expect(await spoken({ stopTokens: [] })).toMatch(/stop tokens has 2 values, expected 0|stop tokens has 0 values/);
  });

  it('is refused if a key belongs to another task, step, sample or agent', async () => {
    const { episode, awaited } = await played();
    const others: Partial<PlayRequest>[] = [
      { step: 8 },
      { sample: 3 },
      { phase: 'baseline' },
      { task: { id: 'b', data: 1 } },
    ];
    for (const other of others) {
      const wanted = { ...awaited.request, ...other };
      const { task, sample } = wanted;
      expect(faultOf({ ...episode, task, sample }, { ...awaited, request: wanted })).toMatch(/did not make the call/);
    }
  });

  it('is refused if any number that the run sampled differs', async () => {
    const { episode, awaited } = await played();
    const fields = ['prompt', 'response', 'logprobs'] as const;
    const change = fc.record({
      at: fc.nat({ max: 3 }),
      field: fc.constantFrom(...fields),
      by: fc.double(),
      place: fc.nat(),
    });
    fc.assert(
      fc.property(change, ({ at, field, by, place }) => {
        const values = episode.turns[at]?.[field] ?? [];
        const i = place % values.length;
        fc.pre(!Object.is(values[i], by));
        expect(faultOf(withField(episode, field, values.with(i, by), at), awaited)).toMatch(field);
      }),
    );
  });
});
