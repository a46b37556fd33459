import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PoolSpec } from '../../recipe/frozen.js';
import type { Played } from '../play/played.js';
import { drawVersions, meetings, type PoolStates, poolsAfter, versionsIn } from './pool-state.js';

const poolOf = (changes: Partial<PoolSpec> = {}) => ({
  name: 'past',
  spec: { type: 'pool', of: 'player', every: 2, keep: 3, draw: 'uniform', ...changes } as const,
});

/** An episode in which the player earns `score` against a version. */
const episode = (version: number, score: number, changes: object = {}) => ({
  score: { team: 0, agents: { player: score, other: -score }, parts: {} },
  turns: [
    { agent: 'player', policy: 'player', policyVersion: 99 },
    { agent: 'other', policy: 'past', policyVersion: version, frozen: true },
  ],
  ...changes,
});

/** A step with one group of episodes for each list of scores. */
const played = (step: number, groups: readonly { readonly version: number; readonly scores: readonly number[] }[]) =>
  ({
    step,
    all: groups.map(({ version, scores }) => ({ episodes: scores.map((score) => episode(version, score)) })),
  }) as unknown as Played;

const task = (id: string) => ({ id, data: {} });

/** How often each version is drawn for a thousand tasks. */
function frequencies(spec: Partial<PoolSpec>, states: PoolStates): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let t = 0; t < 1000; t++) {
    const { past } = drawVersions([poolOf(spec)], states, { seed: 1, step: 1 }, task(`t${t}`));
    counts[past as number] = (counts[past as number] ?? 0) + 1;
  }
  return counts;
}

describe('the versions of a pool', () => {
  it('begin with step 0, grow by one each `every` steps, and the oldest goes when there are `keep`', () => {
    let states: PoolStates = {};
    const seen = [versionsIn(states, 'past')];
    for (let step = 1; step <= 7; step++) {
      states = poolsAfter([poolOf()], states, played(step, []));
      seen.push(versionsIn(states, 'past'));
    }
    const expected = [[0], [0], [0, 2], [0, 2], [0, 2, 4], [0, 2, 4], [2, 4, 6], [2, 4, 6]];
    expect(seen).toEqual(expected);
  });

  it('are drawn from those that are kept, by seed, step and task alone', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('latest', 'uniform', 'prioritised'),
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { minLength: 1, maxLength: 3 }), {
          minLength: 1,
          maxLength: 9,
        }),
        (draw, seed, steps) => {
          const pools = [poolOf({ draw, every: 1 })];
          let states: PoolStates = {};
          for (const [s, scores] of steps.entries()) {
            const position = { seed, step: s + 1 };
            const { past } = drawVersions(pools, states, position, task('t'));
            expect(versionsIn(states, 'past')).toContain(past);
            expect(drawVersions(pools, JSON.parse(JSON.stringify(states)), position, task('t'))).toEqual({ past });
            states = poolsAfter(pools, states, played(s + 1, [{ version: past as number, scores }]));
          }
        },
      ),
    );
  });

  it('are drawn as the setting says', () => {
    const groups = [
      { version: 0, scores: [1, 1] },
      { version: 0, scores: [1, 1] },
      { version: 2, scores: [-1, -1] },
    ];
    const states = [1, 2, 3, 4].reduce<PoolStates>(
      (before, step) => poolsAfter([poolOf()], before, played(step, step === 3 ? groups : [])),
      {},
    );
    expect(versionsIn(states, 'past')).toEqual([0, 2, 4]);
    expect(frequencies({ draw: 'latest' }, states)).toEqual({ 4: 1000 });
    const uniform = frequencies({ draw: 'uniform' }, states);
    for (const version of [0, 2, 4]) expect(Math.abs((uniform[version] as number) - 333)).toBeLessThan(60);
    // Two wins against 0, a loss against 2, and nothing yet against 4.
    const { 0: beaten, 2: strong, 4: unknown } = frequencies({ draw: 'prioritised' }, states) as Record<number, number>;
    expect(beaten).toBeLessThan(unknown as number);
    expect(unknown).toBeLessThan(strong as number);
    expect(beaten).toBeGreaterThan(0);
  });

  it('come back to the middle when they were not met for long', () => {
    const pools = [poolOf({ draw: 'prioritised', every: 1000 })];
    let states = poolsAfter(pools, {}, played(1, [{ version: 0, scores: [1] }]));
    states = poolsAfter(pools, states, played(2, [{ version: 0, scores: [-1] }]));
    const [{ tasks, sum } = { tasks: 0, sum: 0 }] = states.past?.versions ?? [];
    for (let step = 3; step < 1003; step++) states = poolsAfter(pools, states, played(step, []));
    const [later] = states.past?.versions ?? [];
    expect(later?.tasks).toBeCloseTo(tasks / 2, 9); // the weight halves in 1000 steps
    expect(later?.sum).toBeCloseTo(sum / 2, 9);
  });
});

describe('the meetings of a step', () => {
  it('have the mean score of the trained agents for each task, by version', () => {
    const groups = [
      { version: 4, scores: [1, 0] },
      { version: 0, scores: [1] },
      { version: 4, scores: [-1] },
    ];
    expect(meetings([poolOf()], played(1, groups))).toEqual({
      past: [
        { version: 0, episodes: 1, scores: [1] },
        { version: 4, episodes: 3, scores: [0.5, -1] },
      ],
    });
  });

  it('leave out episodes that failed, or in which the pool or no trained agent was called', () => {
    const [player, other] = episode(0, 1).turns;
    const all = [
      { episodes: [episode(0, 1, { failure: { reason: 'error' } }), episode(0, 1, { turns: [player] })] },
      { episodes: [episode(0, 1, { turns: [other] }), episode(0, 0.25)] },
    ];
    expect(meetings([poolOf()], { all } as unknown as Played)).toEqual({
      past: [{ version: 0, episodes: 1, scores: [0.25] }],
    });
  });
});
