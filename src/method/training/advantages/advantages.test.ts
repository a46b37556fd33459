import type { Episode, EpisodeGroup, Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { type Estimator, openEstimator } from '../../advantage/estimators/index.js';
import type { SignalsByTurn } from '../run/signal.js';
import { stepAdvantages } from './advantages.js';

const advantagesOf = (groups: readonly EpisodeGroup[], advantage: Estimator, signals?: SignalsByTurn, agents = {}) =>
  stepAdvantages({ estimator: openEstimator(advantage), agents }, groups, signals);

const episode = (task: string, sample: number, score: Partial<Episode['score']>, turns: readonly Partial<Turn>[]) =>
  ({
    task: { id: task, data: {} },
    sample,
    outcome: {},
    score: { team: 0, agents: {}, parts: {}, ...score },
    turns: turns.map((turn, t) => ({ turn: t, messages: [], prompt: [t], response: [1, 2], penalty: 0, ...turn })),
  }) as Episode;

const solver = { agent: 'solver' };
const verifier = { agent: 'verifier' };
const groups = ['a', 'b'].map((task, t) => ({
  task: { id: task, data: {} },
  episodes: [
    episode(task, 0, { team: 1, agents: { verifier: 0.5 + t } }, [solver, verifier, { ...solver, penalty: 0.25 }]),
    episode(task, 1, { team: 0 }, [solver, { ...verifier, penalty: 0.5 }]),
  ],
}));

it('finds the chains of turns, and the reward of each chain', () => {
  const loop = (sample: number, team: number) =>
    episode('a', sample, { team }, [
      { ...solver, prompt: [0], response: [1] },
      { ...verifier, prompt: [0, 1, 2], response: [1] },
      { ...solver, prompt: [0, 1, 2], response: [3], penalty: 0.5 },
      { ...solver, prompt: [9], response: [1] },
    ]);
  const group = [{ task: { id: 'a', data: {} }, episodes: [loop(0, 1), loop(1, 0)] }];
  const { records, turns } = advantagesOf(group, { type: 'drmas', unit: 'chain', spread: 'none' });
  expect(records.map(({ chain }) => chain)).toEqual([0, 1, 0, 2, 0, 1, 0, 2]);
  const [of0, of1] = [0.75, -0.25]; // the mean over the loop of each episode; the solver's other chain earned 1 and 0
  const centre = (of0 + of1 + 1 + 0) / 4;
  const expected = [of0 - centre, 0.5, of0 - centre, 1 - centre, of1 - centre, -0.5, of1 - centre, -centre];
  turns.forEach(({ advantage }, i) => {
    expect(advantage).toBeCloseTo(expected[i] as number, 12);
  });
});

it('compares no turn with an episode in which no agent that trains wrote a turn', () => {
  const failure = { reason: 'error', message: 'play threw at its first line' } as const;
  const thrown = [2, 3].map((sample) => ({ ...episode('a', sample, { team: 0 }, []), failure }));
  const answered = episode('a', 4, { team: 1 }, [{ agent: 'router', frozen: true }]);
  const acted = [episode('a', 0, { team: 1 }, [solver]), episode('a', 1, { team: 0 }, [solver])];
  const of = (episodes: readonly Episode[], type: string) =>
    advantagesOf([{ task: { id: 'a', data: {} }, episodes }], { type } as Estimator).turns.map(
      (turn) => turn.advantage,
    );
  expect(of([...acted, ...thrown], 'dr-grpo')).toEqual([0.5, -0.5]); // the mean is 1/2, and not 1/4
  const types = ['grpo', 'dr-grpo', 'rloo', 'maxrl', 'gdpo', 'gigpo', 'magrpo', 'reinforce++-baseline', 'rejection'];
  for (const type of [...types, 'grpo-passk', 'hierarchical-grpo', 'drmas', 'drmas-mean', 'drmas-std'])
    expect(of([...acted, ...thrown, answered], type), type).toEqual(of(acted, type));
});

it('counts the calls of an agent over all episodes, also over those in which only frozen agents act', () => {
  const frozen = { agent: 'router', frozen: true } as const;
  const group = {
    task: { id: 'a', data: {} },
    episodes: [
      episode('a', 0, { team: 1 }, [frozen, solver, solver]),
      episode('a', 1, { team: 0 }, [frozen, solver]),
      episode('a', 2, { team: 1 }, [frozen]),
      episode('a', 3, { team: 1 }, []),
    ],
  };
  const { calls } = advantagesOf([group], { type: 'drmas' });
  expect(calls).toEqual({ solver: { share: 0.5, success: 0.5, overall: 0.75, alone: 0 } });
});

describe('the steps that a team names', () => {
  const paid = { penalty: 0.25, stepReward: 0.5 };
  const recordsOf = (turns: readonly Partial<Turn>[]) =>
    advantagesOf([{ task: { id: 'a', data: {} }, episodes: [episode('a', 0, { team: 1 }, turns)] }], { type: 'grpo' })
      .records;

  it('share the rewards of their turns; the outcome arrives with the last step, in any order of calls', () => {
    const records = recordsOf([
      { ...solver, ...paid, envStep: 0 },
      { ...verifier, penalty: 0.25, envStep: 0 },
      { ...solver, envStep: 7 },
      { ...verifier, ...paid, envStep: 2 },
    ]);
    expect(records.map(({ envStep, stepReward, agentStepReward }) => [envStep, stepReward, agentStepReward])).toEqual([
      [0, 0, 0.25],
      [0, 0, -0.25],
      [7, 1, 1],
      [2, 0.25, 0.25 + 1],
    ]);
  });

  it('are the calls if it names none', () => {
    const records = recordsOf([{ ...solver, ...paid }, { ...verifier, penalty: 0.25 }, solver]);
    expect(records.map(({ stepReward }) => stepReward)).toEqual([0.25, -0.25, 1]);
    for (const record of records) expect(record).not.toHaveProperty('envStep');
  });

  it('are the unit that MAGRPO compares and GiGPO discounts', () => {
    const calls = (sample: number, team: number, named: boolean) =>
      episode(
        'a',
        sample,
        { team },
        [solver, verifier, solver].map((turn, i) => ({ ...turn, ...(named && { envStep: i >> 1 }) })),
      );
    const of = (named: boolean, gamma: number) => {
      const episodes = [calls(0, 1, named), calls(1, 0, named)];
      const { turns } = advantagesOf([{ task: { id: 'a', data: {} }, episodes }], {
        type: 'magrpo',
        gamma,
      } as Estimator);
      return turns.map(({ advantage }) => advantage);
    };
    expect(of(true, 0.5)).toEqual([0.25, 0.25, 0.5, -0.25, -0.25, -0.5]);
    expect(of(false, 0.5)).toEqual([0.125, 0.25, 0.5, -0.125, -0.25, -0.5]);
  });
});

describe('the advantages of a step', () => {
  const estimated = advantagesOf(groups, { type: 'drmas', spread: 'none' });

  it("prefers an agent's own reward to the team's, and subtracts each turn's penalty", () => {
    expect(estimated.turns.map(({ reward }) => reward)).toEqual([1, 0.5, 0.75, 0, -0.5, 1, 1.5, 0.75, 0, -0.5]);
  });

  it('compares a turn with turns of the same agent on the same task', () => {
    const mean = (1 + 0.75 + 0) / 3;
    const advantages = [1 - mean, 0.5, 0.75 - mean, 0 - mean, -0.5, 1 - mean, 1, 0.75 - mean, 0 - mean, -1];
    expect(estimated.turns.map(({ advantage }) => advantage)).toEqual(advantages);
  });

  it('keeps turns and their advantages with their episodes', () => {
    const [first, second] = groups[1]?.episodes ?? [];
    if (first === undefined || second === undefined) throw new Error('expected two episodes');
    const all = estimated.turns.map(({ advantage }) => advantage);
    expect(estimated.byEpisode.get(first)).toEqual(all.slice(5, 8));
    expect(estimated.byEpisode.get(second)).toEqual(all.slice(8));
    expect(estimated.turns.map((turn) => turn.episode)).toEqual(
      groups.flatMap(({ episodes }) => episodes.flatMap((parent) => parent.turns.map(() => parent))),
    );
  });

  it('multiplies the advantages of an agent by its weight, token by token if there is one a token', () => {
    const weights = { solver: { rewardWeight: 0.5 }, verifier: { rewardWeight: 0 } };
    const factors = estimated.turns.map(({ turn }) => weights[turn.agent as 'solver' | 'verifier'].rewardWeight);
    for (const estimator of [{ type: 'drmas', spread: 'none' }, { type: 'reinforce++' }] as const) {
      const [plain, weighted] = [advantagesOf(groups, estimator), advantagesOf(groups, estimator, undefined, weights)];
      const expected = plain.turns.map(({ advantage }, i) => [advantage].flat().map((a) => a * (factors[i] ?? 0)));
      expect(weighted.turns.map(({ advantage }) => [advantage].flat())).toEqual(expected);
      expect(weighted.inflation).toEqual(plain.inflation);
    }
  });

  it.each([
    [{ type: 'grpo' }],
    [{ type: 'grpo', episodeScore: 'first' }],
    [{ type: 'grpo', episodeScore: 'outcome+penalties' }],
    [{ type: 'grpo-turn' }],
    [{ type: 'drmas' }],
    [{ type: 'drmas-std' }],
    [{ type: 'rloo' }],
    [{ type: 'gigpo' }],
    [{ type: 'magrpo' }],
  ] as const)('leaves frozen agents out of all statistics: %j is the same without their turns', (estimator) => {
    const judge: Partial<Turn> = { agent: 'judge', frozen: true, penalty: 7 };
    const spoken = groups.map(({ task, episodes }, t) => ({
      task,
      episodes: episodes.map((spokenEpisode, e) => {
        const turns =
          e === 0
            ? [judge, ...spokenEpisode.turns, judge]
            : t === 0
              ? [...spokenEpisode.turns, judge]
              : spokenEpisode.turns;
        return episode(task.id, spokenEpisode.sample, spokenEpisode.score, turns);
      }),
    }));
    const silent = spoken.map(({ task, episodes }) => ({
      task,
      episodes: episodes.map((spokenEpisode) => ({
        ...spokenEpisode,
        turns: spokenEpisode.turns.filter(({ agent }) => agent !== 'judge'),
      })),
    }));
    const [with_, without] = [advantagesOf(spoken, estimator), advantagesOf(silent, estimator)];
    expect(with_.turns.map(({ advantage }) => advantage)).toEqual(without.turns.map(({ advantage }) => advantage));
    expect(with_.inflation).toEqual(without.inflation);
    const first = spoken[0]?.episodes[0] as Episode;
    const entries = with_.byEpisode.get(first) ?? [];
    expect(entries.map((advantage) => advantage === undefined)).toEqual([true, false, false, false, true]);
  });

  it('takes the other inputs of an estimator from its signals', () => {
    const signals = new Map(estimated.turns.map(({ turn }, i) => [turn, { baseline: i }]));
    const { turns } = advantagesOf(groups, { type: 'remax' }, signals);
    expect(turns.map(({ advantage }) => advantage)).toEqual(turns.map(({ reward }, i) => [reward - i, reward - i]));
    expect(() => advantagesOf(groups, { type: 'remax' })).toThrow('baseline must be a finite number');
  });

  it('a turn also earns its own reward, and the outcome arrives with the last turn', () => {
    const messages = [{ role: 'user', content: 'hm' }] as const;
    const turns = [
      { ...solver, stepReward: 0.5, messages: messages },
      { ...solver, penalty: 0.25, messages: messages },
      { ...verifier, observation: 'hm', messages: messages },
    ];
    const twoEpisodes = [
      episode('a', 0, { team: 1 }, turns),
      episode('a', 1, { team: 0 }, [{ ...solver, messages: messages }]),
    ];
    const records = [{ task: { id: 'a', data: {} }, episodes: twoEpisodes }];
    expect(advantagesOf(records, { type: 'drmas' }).turns.map(({ reward }) => reward)).toEqual([1.5, 0.75, 1, 0]);
    // Returns of the steps with gamma 1: 0.5 - 0.25 + 1, -0.25 + 1, 1; 0. Three solver turns read the same words.
    const advantages = advantagesOf(records, { type: 'gigpo', byAgent: true, gamma: 1 }).turns.map(
      ({ advantage }) => advantage,
    );
    const meanReturn = (1.5 + 0.75) / 3;
    const steps = (1.25 + 0.75) / 3;
    const expected = [1.5 - meanReturn + 1.25 - steps, 0.75 - meanReturn + 0.75 - steps, 0, -meanReturn - steps];
    for (const [i, advantage] of advantages.entries()) expect(advantage).toBeCloseTo(expected[i] ?? Number.NaN, 12);
  });

  it('of no turns is empty', () => {
    expect(advantagesOf([], { type: 'drmas' })).toMatchObject({ turns: [], episodes: [], inflation: {} });
  });
});

describe('the state that an agent saw', () => {
  const call = (door: string, id: string) => ({ id, name: 'open', arguments: JSON.stringify({ door }) });
  const history = (door: string, id: string) =>
    [
      { role: 'user', content: 'two doors' },
      { role: 'assistant', content: '', toolCalls: [call(door, id)] },
      { role: 'tool', content: '', toolCallId: id, name: 'open' },
    ] as const;
  const stepParts = (doors: readonly string[]) => {
    const episodes = doors.map((door, sample) =>
      episode('a', sample, { team: Number(door === 'left') }, [
        { ...solver, messages: history(door, `call_${sample}`) },
        { ...solver, messages: [{ role: 'user', content: 'bye' }] },
      ]),
    );
    const group = [{ task: { id: 'a', data: {} }, episodes }];
    const of = (stepWeight: number) => advantagesOf(group, { type: 'gigpo', stepWeight, gamma: 1 }).turns;
    const [both, alone] = [of(1), of(0)];
    return both
      .map(({ advantage }, i) => Number(advantage) - Number(alone[i]?.advantage))
      .filter((_, i) => i % 2 === 0);
  };

  it('has the arguments of tool calls, so GiGPO compares no two states that differ in them', () => {
    expect(stepParts(['left', 'right'])).toEqual([0, 0]);
  });

  it('tells a call from a text that looks like it, and which result belongs to which call', () => {
    const two = ['call_1', 'call_2'].map((id, n) => call(n === 0 ? 'left' : 'right', id));
    const results = (...ids: readonly string[]) => [
      { role: 'user', content: 'two doors' },
      { role: 'assistant', content: '', toolCalls: two },
      ...ids.map((toolCallId, n) => ({ role: 'tool', content: `result ${n}`, toolCallId, name: 'open' })),
    ];
    const text = two.map(({ name, arguments: values }) => `${name}(${values})`).join('\n');
    const states: readonly (readonly object[])[] = [
      results('call_1', 'call_2'),
      results('call_2', 'call_1'),
      [{ role: 'assistant', content: '', toolCalls: two }],
      [{ role: 'assistant', content: text }],
    ];
    const episodes = states.map((messages, n) => episode('a', n, {}, [{ ...solver, messages: messages as never }]));
    const { records } = advantagesOf([{ task: { id: 'a', data: {} }, episodes }], { type: 'grpo' });
    expect(new Set(records.map(({ observation }) => observation)).size).toBe(states.length);
  });

  it('has the tools that the agent could call', () => {
    const tool = (name: string) => ({ name, description: 'opens a door', parameters: {} });
    const messages = [{ role: 'user', content: 'two doors' }] as const;
    const statesOf = (...names: readonly string[][]) => {
      const episodes = names.map((tools, n) => episode('a', n, {}, [{ ...solver, messages, tools: tools.map(tool) }]));
      const { records } = advantagesOf([{ task: { id: 'a', data: {} }, episodes }], { type: 'grpo' });
      return new Set(records.map(({ observation }) => observation)).size;
    };
    expect(statesOf(['open'], ['open'])).toBe(1);
    expect(statesOf(['open'], ['open', 'knock'])).toBe(2);
  });

  it('has the reasoning that a prompt shows, and no other', () => {
    const statesOf = (...prompts: readonly (readonly number[])[]) => {
      const episodes = prompts.map((prompt, n) => {
        const thought = n === 0 ? { ...solver, reasoning: 'hm' } : solver;
        return episode('a', n, {}, [thought, { ...solver, turn: 1, messages: history('left', `call_${n}`), prompt }]);
      });
      const { records } = advantagesOf([{ task: { id: 'a', data: {} }, episodes }], { type: 'grpo' });
      return new Set(records.filter(({ turn }) => turn === 1).map(({ observation }) => observation)).size;
    };
    expect(statesOf([1, 2, 3], [1, 2, 4])).toBe(2);
    expect(statesOf([1, 2, 3], [1, 2, 3])).toBe(1);
  });

  it('has no tokens if only a server reasons', () => {
    const judge = { ...solver, agent: 'judge', frozen: true, endpoint: {}, reasoning: 'hm' } as const;
    const episodes = [1, 2].map((id) => {
      const turn = { ...solver, messages: history('left', `call_${id}`), prompt: [1, id] }; // with the call's id
      return episode('a', id, {}, [turn, { ...judge, turn: 1 }]);
    });
    const { records } = advantagesOf([{ task: { id: 'a', data: {} }, episodes }], { type: 'grpo' });
    expect(records.map(({ agent }) => agent)).toEqual(['solver', 'solver']);
    expect(records[0]?.observation).toBe(records[1]?.observation);
  });

  it('has no ids of calls, which differ in each episode', () => {
    const { records } = advantagesOf(
      [
        {
          task: { id: 'a', data: {} },
          episodes: [0, 1].map((n) => episode('a', n, {}, [{ ...solver, messages: history('left', `call_${n}`) }])),
        },
      ],
      { type: 'grpo' },
    );
    expect(records[0]?.observation).toBe(records[1]?.observation);
  });

  it('tells a message that looks like two from the two', () => {
    const { records } = advantagesOf(
      [
        {
          task: { id: 'a', data: {} },
          episodes: [
            episode('a', 0, {}, [
              {
                ...solver,
                messages: [
                  { role: 'user', content: 'a' },
                  { role: 'assistant', content: 'b' },
                ],
              },
            ]),
            episode('a', 1, {}, [{ ...solver, messages: [{ role: 'user', content: 'a"\nassistant: "b' }] }]),
          ],
        },
      ],
      { type: 'grpo' },
    );
    expect(records[0]?.observation).not.toBe(records[1]?.observation);
  });
});
