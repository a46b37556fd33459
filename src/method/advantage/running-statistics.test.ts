import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { turns, variants } from '../../../test/support/estimator-variants.js';
import { estimateAdvantages } from '../../runs/composition/estimate-advantages.js';
import { estimateStep } from './estimate.js';
import { type Estimator, estimatorSchema } from './estimators/index.js';

const turnOf = (episode: string, agent: string, reward: number, task = 'a'): TurnRecord => ({
  task,
  episode,
  agent,
  turn: 0,
  reward,
});
const single = { type: 'drmas', singleton: 'ema', epsilon: 0 } as const;
const list = (advantages: ArrayLike<number | number[]>) => Array.from(advantages);

describe("a group of one, with singleton 'ema'", () => {
  const first = [turnOf('e0', 'fixer', 1), turnOf('e1', 'fixer', 0, 'b'), turnOf('e2', 'fixer', 0, 'c')];

  it('is compared with the running mean and spread of its agent before the step', () => {
    const begun = estimateStep(first, single);
    // The first step has nothing before it: its own mean 1/3 and variance 1/3 - 1/9.
    const spread = Math.sqrt(2 / 9);
    expect(list(begun.advantages)[0]).toBeCloseTo((1 - 1 / 3) / spread, 12);
    expect(begun.state).toEqual({
      'agent fixer mean': expect.closeTo(1 / 3, 12),
      'agent fixer variance': expect.closeTo(2 / 9, 12),
    });
    const next = estimateStep([turnOf('e0', 'fixer', 1), turnOf('e0', 'coder', 1)], single, begun.state);
    expect(list(next.advantages)[0]).toBeCloseTo((1 - 1 / 3) / spread, 12);
    expect(list(next.advantages)[1]).toBe(0); // of an agent that is new nothing is known but this turn
    expect(next.state['agent fixer mean']).toBeCloseTo(0.9 / 3 + 0.1, 12);
    expect(begun.state['agent fixer mean']).toBeCloseTo(1 / 3, 12);
  });

  it('has the variance of rewards of any size, and goes on from the squares of earlier checkpoints', () => {
    const rewards = [1, 0, 0, 1, 1, 0];
    const stateAfter = (offset: number) =>
      rewards.reduce(
        (state, reward, i) =>
          estimateStep([turnOf('e0', 'fixer', offset + reward), turnOf('e1', 'fixer', offset, `t${i}`)], single, state)
            .state,
        {},
      );
    const [near, far] = [stateAfter(0), stateAfter(1e9)] as Record<string, number>[];
    expect(near?.['agent fixer variance']).toBeGreaterThan(0.1);
    expect(far?.['agent fixer variance']).toBeCloseTo(near?.['agent fixer variance'] ?? Number.NaN, 6);
    const [mean, variance] = [near?.['agent fixer mean'] ?? 0, near?.['agent fixer variance'] ?? 0];
    const earlier = { 'agent fixer mean': mean, 'agent fixer square': variance + mean ** 2 };
    const next = [turnOf('e0', 'fixer', 1)];
    const [now, before] = [estimateStep(next, single, near), estimateStep(next, single, earlier)];
    expect(list(before.advantages)[0]).toBeCloseTo(list(now.advantages)[0] as number, 10);
    expect(Object.keys(before.state)).toEqual(['agent fixer mean', 'agent fixer variance']);
    expect(before.state['agent fixer variance']).toBeCloseTo(now.state['agent fixer variance'] ?? Number.NaN, 10);
  });

  it('and an agent that does not act keeps its statistics', () => {
    const { state } = estimateStep(first, single);
    expect(estimateStep([turnOf('e0', 'coder', 1)], single, state).state).toMatchObject(state);
  });

  it.each<[Estimator, string[]]>([
    [{ type: 'grpo', singleton: 'ema' }, ['episodes']],
    [{ type: 'grpo-turn', singleton: 'ema' }, ['turns']],
    [{ type: 'dr-grpo', singleton: 'ema' }, ['episodes']],
    [{ type: 'drmas-mean', singleton: 'ema' }, ['agent fixer', 'episodes']],
    [{ type: 'drmas-episode', singleton: 'ema' }, ['agent-episodes fixer']],
    [{ type: 'drmas-batch', singleton: 'ema' }, ['batch-agent fixer']],
    [{ type: 'at-grpo', singleton: 'ema' }, ['agent-step fixer']],
  ])('%o keeps statistics of its pools', (estimator, pools) => {
    const { state } = estimateStep(first, estimator);
    expect(Object.keys(state)).toEqual(pools.flatMap((pool) => [`${pool} mean`, `${pool} variance`]));
  });

  it('and a step without a turn, such as one that a filter leaves empty, changes the state of no estimator', () => {
    const running = variants
      .map((variant) => estimatorSchema.safeParse({ ...variant, singleton: 'ema' }))
      .flatMap(({ data }) => data ?? []);
    expect(running.length).toBeGreaterThan(30);
    for (const estimator of running) {
      expect(estimateStep([], estimator).state).toEqual({});
      const { state } = estimateStep(
        first.map((turn) => ({ ...turn, length: 1 })),
        estimator,
      );
      expect(estimateStep([], estimator, state).state).toEqual(state);
    }
  });
});

it('nothing else changes: larger groups are compared as before, and other choices keep no state', () => {
  fc.assert(
    fc.property(turns, (records) => {
      const { advantages } = estimateStep(records, { type: 'drmas', singleton: 'ema' }, { 'agent solver mean': 7 });
      const usual = estimateAdvantages(records, { type: 'drmas' });
      records.forEach(({ task, agent }, i) => {
        const members = records.filter((other) => other.task === task && other.agent === agent);
        if (members.length > 1) expect(advantages[i]).toBe(usual[i]);
      });
      expect(estimateStep(records, { type: 'drmas', singleton: 'batch' }).state).toEqual({});
    }),
  );
});

it('estimators that look at one step alone refuse it', () => {
  expect(() => estimateAdvantages([], { type: 'magrpo', singleton: 'ema' } as unknown as Estimator)).toThrow(
    'advantage.singleton must be one of zero, raw, batch, got "ema"',
  );
});
