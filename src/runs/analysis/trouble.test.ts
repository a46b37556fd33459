import type { AgentStep, Step } from '@drmas/engine/events';
import type { Headline } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { step } from '../../../test/fixtures/run-events.js';
import { emptyLog, extendLog } from './run-log.js';
import { incidentsOf } from './time-line.js';
import { firstCrossings, howToMove, patientZero, unmovedAgents } from './trouble.js';

/** Steps of two agents. A function of the step's number changes each. */
function steps(
  count: number,
  changes: (n: number) => { solver?: Partial<AgentStep>; verifier?: Partial<AgentStep> },
): Step[] {
  return Array.from({ length: count }, (_, i) => {
    const plain = step(i + 1);
    const { solver, verifier } = plain.agents;
    const { solver: ofSolver = {}, verifier: ofVerifier = {} } = changes(i + 1);
    if (solver === undefined || verifier === undefined) throw new Error('the fixture has no such agents');
    return { ...plain, agents: { solver: { ...solver, ...ofSolver }, verifier: { ...verifier, ...ofVerifier } } };
  });
}

it('finds nothing if nothing changes, and ignores changes by learning itself', () => {
  expect(firstCrossings(steps(30, () => ({})))).toEqual([]);
  const learnt = steps(30, (n) =>
    n <= 5 ? {} : { verifier: { gradientNorm: 9, entropy: 0.001, maxAbsAdvantage: 9, rewardMean: 0.95 } },
  );
  expect(firstCrossings(learnt)).toEqual([]);
  expect(patientZero([])).toBeUndefined();
});

it('takes no norm of a step without learning for the first norm of an agent', () => {
  const waiting = { gradientNorm: 0 }; // it has advantages, but its critic learns alone
  for (const silent of [waiting, { ...waiting, maxAbsAdvantage: 0 }])
    for (const quiet of [1, 4, 6, 12]) {
      const crossings = firstCrossings(
        steps(40, (n) => ({ verifier: n <= quiet ? silent : {}, solver: { invalid: n >= 25 ? 0.5 : 0 } })),
      );
      expect(crossings.map(({ agent, sign }) => `${agent} ${sign}`)).toEqual(['solver invalid']);
      expect(patientZero(crossings)?.agent).toBe('solver');
    }
});

it('takes the entropy of all turns, not of those that an update learns from', () => {
  const ofUpdates = (n: number) => (n <= 5 ? 3 : 0.01);
  const moved = (sampledEntropy: (n: number) => number) =>
    firstCrossings(steps(30, (n) => ({ verifier: { entropy: ofUpdates(n), sampledEntropy: sampledEntropy(n) } }))).map(
      ({ sign }) => sign,
    );
  expect(moved(() => 3)).toEqual([]);
  expect(moved(ofUpdates)).toEqual(['entropy']);
});

it('orders first crossings by their steps, and names the agent with the first trouble', () => {
  const crossings = firstCrossings(
    steps(40, (n) => ({
      verifier: { gradientNorm: n >= 12 ? 50 : 0.9, invalid: n >= 20 ? 0.5 : 0 },
      solver: { rewardMean: n >= 30 ? 0 : 0.6 },
    })),
  );
  expect(crossings.map(({ agent, sign, step }) => [agent, sign, step])).toEqual([
    ['verifier', 'norm', 12],
    ['verifier', 'invalid', 20],
    ['solver', 'reward', 30],
  ]);
  expect(patientZero(crossings)).toMatchObject({ agent: 'verifier', sign: 'norm', text: 'gradient norm 0.90 -> 10.7' });
});

it('blames no agent for past trouble, and the first crossing for lasting trouble', () => {
  const passing = (until: number) =>
    firstCrossings(
      steps(40, (n) => ({
        solver: { gradientNorm: n >= 12 && n < 20 ? 50 : 0.3 },
        verifier: { invalid: n >= 20 && n < until ? 0.5 : 0 },
      })),
    );
  const [over, lasting] = [passing(30), passing(99)];
  expect(over.map(({ agent, sign, lasts }) => [agent, sign, lasts])).toEqual([
    ['solver', 'norm', false],
    ['verifier', 'invalid', false],
  ]);
  expect(patientZero(over)).toBeUndefined();
  expect(lasting.map(({ lasts }) => lasts)).toEqual([false, true]);
  expect(patientZero(lasting)).toMatchObject({ agent: 'solver', sign: 'norm' });
});

it('does not blame an agent for one large norm alone, nor one that does not train', () => {
  const norms = firstCrossings(steps(20, (n) => ({ solver: { gradientNorm: n === 12 ? 99 : 0.3 } })));
  expect(norms.map(({ sign }) => sign)).toEqual(['norm']);
  expect(patientZero(norms)).toBeUndefined();
  expect(firstCrossings(steps(20, (n) => ({ solver: { frozen: true, invalid: n > 8 ? 1 : 0 } })))).toEqual([]);
});

it('ignores values that are not numbers, and needs two ranges of steps to compare', () => {
  const broken = steps(20, (n) => ({ solver: { gradientNorm: n > 6 ? Number.NaN : 0.3, invalid: n > 10 ? 1 : 0 } }));
  expect(firstCrossings(broken).map(({ sign, step }) => [sign, step])).toEqual([['invalid', 11]]);
  expect(firstCrossings(steps(9, (n) => ({ solver: { invalid: n > 5 ? 1 : 0 } })))).toEqual([]);
});

it('puts spikes, symptoms, warnings, failures and crossings on one time line', () => {
  const base = { time: '', version: 1 };
  const log = extendLog(emptyLog, [
    ...steps(3, () => ({})).map((event) => ({ ...event, ...base })),
    { ...base, type: 'spike', step: 2, policy: 'verifier', gradientNorm: 3, median: 1, action: 'clip', episodes: [] },
    {
      ...base,
      type: 'skipped',
      step: 3,
      policy: 'shared',
      gradientNorm: null,
      median: 1,
      action: 'skip',
      episodes: [],
    },
    { ...base, type: 'warning', step: 2, code: 'echo-trap', agent: 'solver', message: 'echo' },
    { ...base, type: 'warning', code: 'cache', message: 'cold' },
    { ...base, type: 'best', step: 2, by: 'averageAtK', score: 0.5 },
    { ...base, type: 'stop', step: 3, rule: 'tokens', message: 'enough' },
    ...[0, 1].map((episode) => {
      const failed = { ...base, type: 'episode.failed', step: 1, task: 't', reason: 'error' } as const;
      return { ...failed, episode, message: 'no', action: 'exclude' } as const;
    }),
  ]);
  expect(incidentsOf(log, []).map(({ step, agent, kind, count }) => [step, agent, kind, count])).toEqual([
    [0, undefined, 'warning', 1],
    [1, undefined, 'failed', 2],
    [2, 'verifier', 'spike', 1],
    [2, 'solver', 'symptom', 1],
    [3, undefined, 'skipped', 1],
    [3, undefined, 'stop', 1],
  ]);
  expect([log.best?.step, log.stop?.rule]).toEqual([2, 'tokens']);
  expect(extendLog(log, []).stop?.rule).toBe('tokens');
  expect(extendLog(log, [{ ...step(4), ...base }]).stop).toBeUndefined(); // resumed with other rules
});

it('names agents whose policy has not moved, and none that learns, has nothing to learn from, or is frozen', () => {
  const still = { entropy: 1.25, rewardMean: 0.3, rewardStd: 0.4, maxAbsAdvantage: 1 };
  const named = (change: (n: number) => Partial<AgentStep>, count = 40, score = 0.3, headline: Headline = 'score') =>
    unmovedAgents(
      steps(count, (n) => ({ solver: { ...still, ...change(n) }, verifier: { entropy: 2 / n } })),
      { headline, last: { averageAtK: score } },
    );
  expect(named(() => ({}))).toEqual(['solver: entropy 1.25 -> 1.25, reward 0.30 -> 0.30']);
  expect(named(() => ({}), 29)).toEqual([]);
  expect(named((n) => ({ rewardMean: 0.3 + n / 100 }))).toEqual([]);
  expect(named((n) => ({ entropy: 1.25 - n / 200 }))).toEqual([]);
  // The entropy of all turns counts, not of those that an update learns from.
  expect(named((n) => ({ sampledEntropy: 1.25 - n / 200 }))).toEqual([]);
  expect(named((n) => ({ entropy: 2 / n, sampledEntropy: 1.5 }))).toEqual([
    'solver: entropy 1.50 -> 1.50, reward 0.30 -> 0.30',
  ]);
  expect(named(() => ({ maxAbsAdvantage: 0 }))).toEqual([]);
  expect(named(() => ({ frozen: true }))).toEqual([]);
  expect(named(() => ({}), 40, 0.99)).toEqual([]); // the run is solved
  expect(named(() => ({}), 40, 0.99, 'reward')).toHaveLength(1);
});

it('names chance and advantages only where those of an agent that learns were measured', () => {
  expect(howToMove([{ policies: {}, agents: {} }])).not.toMatch(/chance:|advantages are/);
  expect(howToMove([])).not.toMatch(/chance:|advantages are/);
});

/** The facts that may hold a policy back: its settings and its last event, and the advice. */
const HELD = {
  'a KL penalty': [{ klCoefficient: 300 }, {}, /KL penalty/],
  'an entropy bonus': [{}, { entropyCoefficient: 50 }, /entropy bonus/],
  clipping: [{ gradientNorm: 1 }, { optimizer: 'sgd', clipNorm: 1e-9 }, /Clipping/],
  'a low learning rate': [{}, {}, /learning rate is too low/],
} as const;
const kinds = Object.keys(HELD) as (keyof typeof HELD)[];

describe('advice about a policy that has not moved', () => {
  const still = { entropy: 1.25, rewardMean: 0.3, rewardStd: 0.4, maxAbsAdvantage: 1 };
  const run = (solver: keyof typeof HELD, verifier: keyof typeof HELD, verifierMoves: boolean, skipsLast = false) => {
    const played = steps(40, (n) => ({
      solver: still,
      verifier: verifierMoves ? { ...still, rewardMean: 0.3 + n / 50 } : still,
    })).map((one) => {
      const policies = { solver: { ...one.policies.solver, ...HELD[solver][0] }, verifier: HELD[verifier][0] };
      return { ...one, policies: skipsLast && one.step === 40 ? {} : policies } as Step;
    });
    const plain = { optimizer: 'adamw', clipNorm: 1, entropyCoefficient: 0 };
    const learning = {
      solver: { ...plain, ...HELD[solver][1], agents: ['solver'] },
      verifier: { ...plain, ...HELD[verifier][1], agents: ['verifier'] },
    };
    return howToMove(played, { learning });
  };

  it.each(kinds.flatMap((own) => kinds.map((other) => [own, other] as const)))(
    '%s, beside a policy that learns with %s, is about the first alone',
    (own, other) => {
      for (const skipsLast of [false, true]) {
        const advice = run(own, other, true, skipsLast);
        expect(advice).toMatch(HELD[own][2]);
        if (own !== other) expect(advice).not.toMatch(HELD[other][2]);
        expect(advice).not.toContain('verifier');
      }
    },
  );

  it.each([
    ['sgd', 0.005, /advantages are at most 0\.0050/],
    ['adamw', 0.005, /learning rate is too low/], // its steps do not depend on the size of advantages
    ['nigt', 0.005, /learning rate is too low/],
    ['adamw', 1e-8, /advantages are at most 1\.0?e-8/],
  ])('names small advantages only if they matter: under %s, of %d', (optimizer, maxAbsAdvantage, advice) => {
    const played = steps(40, () => ({ solver: { ...still, maxAbsAdvantage } })).map((one) => {
      return { ...one, policies: { solver: one.policies.solver } } as Step;
    });
    const learning = { solver: { optimizer, clipNorm: 1, entropyCoefficient: 0, agents: ['solver'] } };
    expect(howToMove(played, { learning })).toMatch(advice);
  });

  it('is about both if neither moves', () => {
    expect(run('a KL penalty', 'a low learning rate', false)).toMatch(
      /^The policies hardly move\. solver: Its KL penalty .* verifier: Mostly its learning rate/,
    );
    expect(run('a low learning rate', 'a low learning rate', false)).toMatch(/^The policy hardly moves\. Mostly/);
  });
});
