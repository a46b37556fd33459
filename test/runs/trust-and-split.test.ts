// @module-tag verify
/** The rules of trust and split: the messages each agent sees, the value of coins, and the agents who earn it. */
import { describe, expect, it } from 'vitest';
import game, { beats, coins, team } from '../../examples/trust-and-split/recipe.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const deals: ['rock' | 'paper', 'scissors'][] = [
  ['rock', 'scissors'],
  ['paper', 'scissors'],
];

describe('trust and split', () => {
  it('has hands that beat each other in a circle, and coins that are divided in proportion', () => {
    const hands = ['rock', 'paper', 'scissors'] as const;
    for (const hand of hands) {
      expect(hands.filter((other) => beats(hand, other)).length).toBe(1);
      for (const other of hands) expect(beats(hand, other) && beats(other, hand)).toBe(false);
    }
    expect(beats('rock', 'scissors')).toBe(true);
    expect([coins(10, 10), coins(10, 5), coins(5, 10), coins(5, 0), coins(0, 0)]).toEqual([
      5,
      expect.closeTo(20 / 3, 12),
      expect.closeTo(10 / 3, 12),
      5,
      0,
    ]);
  });

  it('tells each player the other’s offer and the result of the last round, and nothing else', async () => {
    const played = await playScripted(
      team,
      { deals },
      { alice: ['rock', '10', 'paper', '10'], bob: ['paper', '0', 'scissors', '10'] },
    );
    const read = (agent: string) =>
      played.turns.flatMap((turn) => (turn.agent === agent ? [turn.messages.at(-1)?.content] : []));
    // Bob lies in the first round, in which he has the losing hand and keeps nothing; then he wins.
    expect(read('alice')).toEqual(['<say>rock', '<split>rockpaper', '<say>paper<won>0', '<split>paperscissors<won>0']);
    expect(read('bob')).toEqual([
      '<say>scissors',
      '<split>scissorsrock',
      '<say>scissors<lost>10',
      '<split>scissorspaper<lost>10',
    ]);
    expect(played.turns.map(({ envStep }) => envStep)).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
    // Alice earns 1 and then half of the coins at a tenth; both together earn 1 and 0.55 on average.
    const earned = (agent: string) =>
      played.turns.filter((turn) => turn.agent === agent).map(({ stepReward = 0 }) => stepReward);
    expect(earned('alice')).toEqual([0, 1, 0, expect.closeTo(0.05, 12)]);
    expect(earned('bob')).toEqual([0, 0, 0, 0.5]);
    expect(played.score).toMatchObject({ team: expect.closeTo(1.55 / 2, 12), agents: { alice: 0, bob: 0 } });
    expect(played.score.metrics).toEqual({ truth: 0.75, winnerKeeps: 10, loserKeeps: 5 });
  });

  it('trains from start to end', async () => {
    const overrides = ['warmStart.steps=4', 'training.steps=2', 'training.groupSize=2', 'evaluation.tasks=2'];
    const run = await trainTiny(temporaryRoot(), resolveRecipe(game, { overrides }));
    const steps = await stepsOf(run);
    expect(steps.map(({ agents }) => Object.keys(agents).sort())).toEqual(Array(2).fill(['alice', 'bob']));
  });
});
