// @module-tag verify
/** The laws of the example with learned messages: the inputs of each agent, and that one word is enough. */
import { describe, expect, it } from 'vitest';
import messages, { hinted, team } from '../../examples/messages/recipe.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const things = ['lamp', 'rug', 'vase'] as const;
const words = ['ba', 'di', 'ko'] as const;
const rooms = things.flatMap((left) => things.map((right) => ({ left, right })));

/** The word by which a local agent that takes hints as it was shown gets from its thing to the other. */
const wordFor = (name: 'left' | 'right', thing: (typeof things)[number], other: string) =>
  words.find((word) => hinted(name, thing, word) === other) ?? '';

describe('a hub that sends messages', () => {
  it('can make both locals right in every pair of rooms, with one word for both too', async () => {
    for (const { left, right } of rooms) {
      const [toLeft, toRight] = [wordFor('left', left, right), wordFor('right', right, left)];
      expect(toLeft).toBe(toRight); // what tells one of them the way there tells the other the way back
      for (const [message, hub] of [
        ['private', [toLeft, toRight]],
        ['shared', [toLeft]],
      ] as const) {
        const lines = { hub, left: [right], right: [left] };
        const played = await playScripted(team, { left, right, message }, lines);
        expect(played.score.team).toBe(1);
        expect(played.turns.filter(({ agent }) => agent === 'hub').length).toBe(hub.length);
        const read = (name: string) => played.turns.find(({ agent }) => agent === name)?.messages.at(-1)?.content;
        expect([read('left'), read('right')]).toEqual([`${left}${toLeft}`, `${right}${toRight}`]);
      }
    }
  });

  it('is not called if no agent may speak', async () => {
    const task = { left: 'lamp', right: 'rug', message: 'none' } as const;
    const { turns, score } = await playScripted(team, task, { left: ['rug'], right: ['vase'] });
    expect(turns.map(({ agent, messages }) => [agent, messages.at(-1)?.content])).toEqual([
      ['left', 'lamp'],
      ['right', 'rug'],
    ]);
    expect(score.team).toBe(0.5);
  });

  it('trains from start to end', async () => {
    const overrides = ['warmStart.steps=4', 'training.steps=2', 'training.groupSize=2', 'evaluation.samples=1'];
    const run = await trainTiny(temporaryRoot(), resolveRecipe(messages, { overrides }));
    expect((await stepsOf(run)).map(({ agents }) => Object.keys(agents).sort())).toEqual(
      Array(2).fill(['hub', 'left', 'right']),
    );
  });
});
