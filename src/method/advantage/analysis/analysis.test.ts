import { describe, expect, it } from 'vitest';
import { estimators, openEstimator } from '../estimators/index.js';
import { TurnBatch } from '../turn-batch.js';
import { advantageSizes, magnitude } from './advantage-sizes.js';
import { agentCalls } from './agent-calls.js';
import { agentRewards } from './agent-rewards.js';
import { explainInflation, inflationAdvice, sharesMean } from './diagnosis.js';
import { columnOf, countKinds, groupOutcomes } from './outcome-groups.js';

describe('the calls of an agent', () => {
  const turnOf = (task: string, episode: string, agent: string, reward: number, outcome?: number) => ({
    task,
    episode,
    agent,
    turn: 0,
    reward,
    ...(outcome === undefined ? {} : { outcome }),
  });

  it('counts episodes, not turns, by their outcome if every turn has it', () => {
    const turns = (known: boolean) => [
      turnOf('a', 'e0', 'coder', 1, known ? 1 : undefined),
      turnOf('a', 'e1', 'coder', 0, 0),
      turnOf('a', 'e1', 'fixer', -1, 0),
      turnOf('a', 'e1', 'fixer', -1, 0),
      turnOf('b', 'e0', 'coder', 1, 1),
      turnOf('b', 'e0', 'fixer', 0, 1),
      turnOf('b', 'e1', 'coder', 1, 1),
    ];
    expect(agentCalls(new TurnBatch(turns(true)))).toEqual({
      coder: { share: 1, success: 3 / 4, overall: 3 / 4, alone: 0 },
      fixer: { share: 1 / 2, success: 1 / 2, overall: 3 / 4, alone: 1 / 2 }, // twice in task a, once in task b
    });
    const { fixer } = agentCalls(new TurnBatch(turns(false)));
    expect(fixer?.success).toBeCloseTo((-2 / 3 + 1 / 2) / 2, 12);
    expect(agentCalls(new TurnBatch([]))).toEqual({});
  });
});

describe('the rewards of an agent', () => {
  const turnOf = (agent: string, reward: number, task = 'a', episode = 'e0') => ({
    task,
    episode,
    agent,
    turn: 0,
    reward,
  });

  it('are averaged over its turns; the spread within tasks ignores differences between tasks', () => {
    const batch = new TurnBatch([
      turnOf('solver', 1),
      turnOf('critic', 5),
      turnOf('solver', 0, 'a', 'e1'),
      turnOf('solver', 3, 'b'),
      turnOf('solver', 3, 'b', 'e1'),
      turnOf('solver', 7 / 4, 'c'), // alone in its task
    ]);
    const { solver, critic } = agentRewards(batch);
    expect(solver).toMatchObject({ turns: 5, callsPerEpisode: 1, rewardMean: 7 / 4 });
    expect(solver?.rewardStd).toBeCloseTo(Math.sqrt(6.75 / 4), 12);
    expect(solver?.groupSpread).toBeCloseTo(Math.SQRT1_2 / 2, 12);
    expect(critic).toEqual({ turns: 1, callsPerEpisode: 1 / 5, rewardMean: 5, rewardStd: 0, groupSpread: undefined });
    expect(agentRewards(batch, 10).solver?.callsPerEpisode).toBe(0.5);
    expect(agentRewards(new TurnBatch([]))).toEqual({});
  });
});

describe('the sizes of advantages', () => {
  const turnOf = (agent: string) => ({ task: 'a', episode: 'e0', agent, turn: 0, reward: 1 });

  it('are computed for each agent, by the largest token of a turn', () => {
    const batch = new TurnBatch([turnOf('solver'), turnOf('critic'), turnOf('solver')]);
    expect(advantageSizes(batch, [[1, -3], 2, 0])).toEqual({
      solver: { meanAbs: 1.5, maxAbs: 3, zero: 0.5, secondMoment: 4.5 },
      critic: { meanAbs: 2, maxAbs: 2, zero: 0, secondMoment: 4 },
    });
  });

  it('the magnitude of an advantage is its largest absolute value', () => {
    expect([magnitude(-2), magnitude(1), magnitude([0.5, -3, 1]), magnitude([])]).toEqual([2, 1, 3, 0]);
  });
});

describe('groups by outcome', () => {
  const kindOf = (turns: readonly { outcome: number; earned?: number; penalty?: number; agent?: string }[]) => {
    const agentOf = ({ agent = '' }) => agent;
    const [group] = groupOutcomes(1, {
      outcome: columnOf([turns], ({ outcome }) => outcome),
      earned: columnOf([turns], ({ outcome, earned = outcome }) => earned, agentOf),
      reward: columnOf([turns], ({ outcome, earned = outcome, penalty = 0 }) => earned - penalty, agentOf),
    });
    return group;
  };

  it('are divided by the first thing that differs', () => {
    expect(kindOf([{ outcome: 1 }, { outcome: 0, penalty: 1 }])).toEqual({ kind: 'mixed', right: true });
    expect(kindOf([{ outcome: 0, earned: 1 }, { outcome: 0 }])).toEqual({ kind: 'ownRewardsOnly', right: false });
    expect(kindOf([{ outcome: 0 }, { outcome: 0, penalty: 0.1 }])).toEqual({ kind: 'penaltiesOnly', right: false });
    expect(kindOf([{ outcome: 1 }, { outcome: 1 }])).toEqual({ kind: 'nothing', right: true });
    expect(kindOf([])).toEqual({ kind: 'nothing', right: false });
  });

  it('compare rewards only among peers', () => {
    const apart = [
      { outcome: 1, earned: 2, agent: 'solver' },
      { outcome: 1, earned: 3, agent: 'critic' },
    ];
    expect(kindOf(apart)?.kind).toBe('nothing');
    expect(kindOf(apart.map((turn) => ({ ...turn, agent: 'solver' })))?.kind).toBe('ownRewardsOnly');
  });

  it('are right only if every member succeeds, if success is known', () => {
    const groups = [[0.2, 0.2], [1, 1], [0.2], []];
    const successes = [[0, 0], [1, 0.5], [0.4], []];
    const outcome = columnOf(groups, (value) => value);
    const success = columnOf(successes, (value) => value);
    const outcomes = groupOutcomes(groups.length, { outcome, success, reward: outcome });
    expect(outcomes.map(({ right }) => right)).toEqual([false, true, false, false]);
  });

  it('ignore differences by rounding, and count once as right or wrong unless they are mixed', () => {
    const groups = [[0.1 + 0.2, 0.3], [0, 0], [1, 0], [1]];
    const column = columnOf(groups, (outcome) => outcome);
    const counts = countKinds(groupOutcomes(groups.length, { outcome: column, reward: column }));
    expect(counts).toEqual({ allRight: 2, allWrong: 1, mixed: 1, ownRewardsOnly: 0, penaltiesOnly: 0, nothing: 3 });
  });
});

const escalation = { share: 0.25, success: 1 / 12, overall: 0.77 };
const always = { share: 1, success: 0.77, overall: 0.77 };

describe('the explanation of an inflation', () => {
  it.each([
    [
      'called when things go badly',
      3.08,
      escalation,
      'fixer is called in 25 % of the episodes, those that go badly (0.0833 on average, 0.77 over all): shared statistics multiply the second moment of its gradient by 3.08.',
    ],
    ['called when things go well', 1.6, { share: 0.2, success: 0.9, overall: 0.3 }, /those that go well/],
    ['damped', 0.6, { share: 0.2, success: 0.1, overall: 0.3 }, /those that go badly .* by 0\.60/],
    ['called independently of success', 1, { share: 0.5, success: 0.77, overall: 0.77 }, /as its own would \(1\.00\)/],
    ['called always, for other rewards', 12.31, always, /not those of the whole team: .* by 12\.3/],
    ['no spread', undefined, always, /no inflation to judge/],
  ])('%s', (_, inflation, calls, expected) => {
    expect(explainInflation('fixer', { inflation, calls })).toMatch(expected);
  });

  it.each([
    [
      'inflated',
      3.08,
      escalation,
      0.17,
      /by 3\.08\. Under them 17 % of its learning signal would come from its own rewards, /,
    ],
    [
      'drowned by others',
      1,
      always,
      0.03,
      /leave the second moment .* \(1\.00\)\. Under them 3 % of its learning signal would come/,
    ],
    ['nearly all its own', 1, always, 0.9, /as its own would \(1\.00\)\.$/],
  ])('%s', (_, inflation, calls, ownShare, expected) => {
    expect(explainInflation('fixer', { inflation, ownShare, calls })).toMatch(expected);
  });
});

describe('the advice about an inflation', () => {
  it('names the agent, the reason and the setting, below half of its own', () => {
    const run = { type: 'grpo', groupSize: 16 };
    expect(inflationAdvice('fixer', { inflation: 2, calls: escalation }, run)).toBeUndefined();
    expect(inflationAdvice('fixer', { inflation: undefined, calls: escalation }, run)).toBeUndefined();
    expect(inflationAdvice('fixer', { inflation: 2, ownShare: 0.5, calls: escalation }, run)).toBeUndefined();
    expect(inflationAdvice('fixer', { inflation: 1, ownShare: 0.49, calls: always }, run)).toBeDefined();
    const advice = inflationAdvice('fixer', { inflation: 3, calls: escalation }, run);
    expect(advice?.says).toMatch(
      /^fixer is called in 25 % of the episodes, those that go badly .* grpo judges it by the rewards of the others/,
    );
    expect(advice?.remedy).toMatch(/^advantage\.type=drmas/);
    expect(advice?.remedy).toMatch(/may help/);
    expect(advice?.remedy).not.toMatch(/groupSize/);
    // The own share decides if it is known; the inflation alone missed most gains.
    expect(inflationAdvice('fixer', { inflation: 3.6, ownShare: 0.5, calls: escalation }, run)).toBeUndefined();
    const drowned = inflationAdvice('fixer', { inflation: 1.2, ownShare: 0.3, calls: escalation }, run);
    expect(drowned?.says).toMatch(/30 % of its learning signal comes from its own rewards/);
    const small = inflationAdvice('fixer', { inflation: 3, calls: escalation }, { ...run, groupSize: 8 });
    expect(small?.remedy).toMatch(/called in 2\.00 episodes of a group of 8: a larger training\.groupSize/);
  });

  it('is for estimators whose agents share a mean', () => {
    const sharing = estimators
      .map(({ type }) => type)
      .filter((type) => {
        const choices = type === 'partition' ? { score: 'turn', mean: 'agent', spread: 'task' } : {};
        return sharesMean(openEstimator({ type, ...choices } as Parameters<typeof openEstimator>[0]));
      });
    expect(new Set(sharing)).toEqual(
      new Set([
        ...['grpo', 'dr-grpo', 'grpo-turn', 'drmas-std', 'rloo', 'reinforce++-baseline'],
        ...['maxrl', 'gdpo', 'gigpo'],
      ]),
    );
    for (const type of ['rloo', 'maxrl', 'gdpo', 'gigpo']) {
      const byAgent = { type, byAgent: true } as Parameters<typeof openEstimator>[0];
      expect(sharesMean(openEstimator(byAgent))).toBe(false);
    }
  });
});
