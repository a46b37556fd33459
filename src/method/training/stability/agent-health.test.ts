import type { Episode, Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { filterSchema } from '../../advantage/filter-schema.js';
import { passFilter } from '../play/group-sizes.js';
import { agentHealth, groupKinds, type PlayedTurn } from './agent-health.js';

interface Said {
  readonly task?: string;
  readonly text?: string;
  readonly valid?: boolean;
  readonly reward?: number;
  readonly penalty?: number;
  readonly call?: number;
  readonly advantage?: number | readonly number[];
}

function playedTurn({
  task = 'a',
  text = 'x',
  valid = true,
  reward = 0,
  penalty = 0,
  call = 0,
  advantage = 0,
}: Said): PlayedTurn {
  const turn = { agent: 'solver', text, valid, penalty, call } as Turn;
  const score = { team: reward, agents: {}, parts: {} };
  return { episode: { task: { id: task }, score, turns: [turn] } as unknown as Episode, turn, advantage };
}
const health = (...turns: Said[]) => agentHealth(turns.map(playedTurn));

describe('the health of an agent', () => {
  it('counts turns that repeat one of another episode of the task word for word', () => {
    expect(health({ text: 'p' }, { text: 'p' }, { text: 'q' }, { text: 'r' }).duplicates).toBe(0.5);
    expect(health({ text: 'p' }, { text: 'p', task: 'b' }).duplicates).toBe(0);
    expect(health({ text: 'p' }, { text: 'p' }, { text: 'p' }).duplicates).toBe(1);
    const twice = playedTurn({ text: 'p' });
    expect(agentHealth([twice, { ...twice, turn: { ...twice.turn, call: 1 } }]).duplicates).toBe(0);
  });

  it('counts the invalid turns with a positive advantage, independent of the valid turns', () => {
    const turns = [{ advantage: 2 }, { valid: false, advantage: 0.5 }, { valid: false, advantage: -1 }];
    expect(health(...turns).rewardedInvalid).toBe(0.5);
    expect(health({ advantage: 2 })).not.toHaveProperty('rewardedInvalid');
    expect(health({ valid: false, advantage: [-1, 0.1] }).rewardedInvalid).toBe(1);
  });

  it('looks for one prompt of all tasks without a copy of each prompt', () => {
    const rules = 'a rule of the game\n'.repeat(50_000);
    const asked = (count: number, question: (task: number) => string) =>
      agentHealth(
        Array.from({ length: count }, (_, i) => {
          const { turn, ...played } = playedTurn({ task: `${i}` });
          const messages = [{ role: 'user' as const, content: rules + question(i) }];
          return { ...played, turn: { ...turn, turn: 0, messages } };
        }),
      );
    expect(asked(5000, (task) => `${task}`)).not.toHaveProperty('samePrompt');
    expect(asked(3, () => '1')).toHaveProperty('samePrompt', true);
    expect(asked(1, () => '1')).not.toHaveProperty('samePrompt');
  });

  it('sorts its groups by outcome, and marks groups that differ only by penalties', () => {
    const { groups } = health(
      { task: 'right', reward: 1 },
      { task: 'right', reward: 1 },
      { task: 'wrong', reward: 0 },
      { task: 'wrong', reward: 0, penalty: 0.1 },
      { task: 'mixed', reward: 1, penalty: 0.1 },
      { task: 'mixed', reward: 0 },
    );
    expect(groups).toEqual({ allRight: 1, allWrong: 1, mixed: 1, penaltyOnly: 1 });
  });
});

it("a step's groups are sorted by the team's reward, with the penalties of all agents", () => {
  const episodes = (...turns: Said[]) => ({
    task: { id: 'a', data: {} },
    episodes: turns.map((turn) => playedTurn(turn).episode),
  });
  const kinds = groupKinds([
    episodes({ reward: 1 }, { reward: 1 }),
    episodes({ reward: 1 }, { reward: 1, penalty: 1 }),
    episodes({ reward: 0 }, { reward: 0 }),
    episodes({ reward: 0 }, { reward: 1 }),
  ]);
  expect(kinds).toEqual({ allRight: 2, allWrong: 1, mixed: 1, penaltyOnly: 1 });
});

it('compares no episode in which no agent that trains wrote a turn, for the kinds of groups and for the filter', () => {
  const wrote = (team: number, turns: readonly object[]) =>
    ({ task: { id: 'a' }, score: { team, agents: {}, parts: {} }, turns }) as unknown as Episode;
  const [right, wrong] = [wrote(1, [{ penalty: 0 }]), wrote(0, [{ penalty: 0 }])];
  const [thrown, frozen] = [wrote(0, []), wrote(0, [{ penalty: 0, frozen: true }])];
  const groupOf = (...episodes: Episode[]) => ({ task: { id: 'a', data: {} }, episodes });
  const kinds = { allRight: 0, allWrong: 0, mixed: 0, penaltyOnly: 0 };
  const filter = filterSchema.parse({ type: 'equal-outcomes' });
  for (const [group, kind] of [
    [groupOf(right, thrown, thrown, frozen), 'allRight'],
    [groupOf(right, right, frozen), 'allRight'],
    [groupOf(right, wrong, thrown), 'mixed'],
    [groupOf(thrown, frozen), 'allWrong'],
  ] as const) {
    expect(groupKinds([group])).toEqual({ ...kinds, [kind]: 1 });
    expect(passFilter([group], filter)).toHaveLength(Number(kind === 'mixed'));
  }
  const widest = filterSchema.parse({ type: 'variance', keep: 0.5 });
  const [mixed, alone] = [groupOf(right, wrong), groupOf(wrote(9, [{ penalty: 0 }]), thrown)];
  expect(passFilter([alone, mixed], widest)).toEqual([mixed]);
});

it('a group that earns the same without success is all wrong, for the team and for an agent without its own reward', () => {
  const partly = { reward: 0.2, task: 'partly' };
  const { episode } = playedTurn(partly);
  const wrong = { allRight: 0, allWrong: 1, mixed: 0, penaltyOnly: 0 };
  expect(groupKinds([{ task: episode.task, episodes: [episode, episode] }])).toEqual(wrong);
  expect(health(partly, partly).groups).toEqual(wrong);
});

it('ignores the penalties of a frozen agent', () => {
  const episode = (penalty: number) => {
    const turns = [{ penalty: 0 }, { penalty, frozen: true }];
    return { score: { team: 1, parts: {} }, turns } as unknown as Episode;
  };
  const kinds = groupKinds([{ task: { id: 'a', data: {} }, episodes: [episode(0), episode(0.5)] }]);
  expect(kinds).toEqual({ allRight: 1, allWrong: 0, mixed: 0, penaltyOnly: 0 });
});

describe('the share of chance in rewards', () => {
  const texts = ['p', 'p', 'p', 'q', 'q', 'q'];
  const earned = (...rewards: number[]) =>
    health(...rewards.map((reward, i) => ({ text: texts[i] ?? '', reward }))).chance;

  it('is 0 if the text decides, and about 1 or more if equal texts differ as much as others', () => {
    expect(earned(1, 1, 1, 0, 0, 0)).toBe(0);
    // Of texts: 4 squares of 1/3 and 2 of 2/3, over 4 degrees of freedom; of the task: 6 squares of 1/2, over 5.
    expect(earned(1, 0, 0, 1, 1, 0)).toBeCloseTo(8 / 6 / 4 / (1.5 / 5), 12);
  });

  it('is absent if all earn the same, and if texts hardly repeat', () => {
    expect(earned(1, 1, 1, 1, 1, 1)).toBeUndefined();
    expect(earned(1, 0, 1, 0)).toBeUndefined();
  });
});
