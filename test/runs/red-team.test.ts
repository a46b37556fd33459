// @module-tag verify
/** The law of training against an adversary: its reward is the team's loss, and its advantages are its own. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import redTeam, { team } from '../../examples/red-team/recipe.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { temporaryRoot, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();

describe('an adversary that rewrites one message', () => {
  it('turns round the message that it names, and no other', async () => {
    const heardAfter = async (rewrite: string) => {
      const task = { sky: 'sun', attack: 1, held: false } as const;
      const { turns } = await playScripted(team, task, {
        scout: ['it is bright'],
        adversary: [rewrite],
        captain: ['sail'],
      });
      return (
        turns
          .find(({ agent }) => agent === 'captain')
          ?.messages.at(-1)
          ?.content.split(', ') ?? []
      );
    };
    const heard = await heardAfter('nothing');
    expect(heard[0]).toBe('sun');
    const differs = async (rewrite: string) => (await heardAfter(rewrite)).map((message, i) => message !== heard[i]);
    expect(await differs('the scout')).toEqual([true, false, false]);
    expect(await differs('the first')).toEqual([false, true, false]);
    expect(await differs('the second')).toEqual([false, false, true]);
  });

  it('is called with a probability, never in evaluations, and gains when the team loses', async () => {
    const recipe = resolveRecipe(redTeam, { overrides: ['training.steps=1', 'evaluation.samples=1'] });
    const run = await trainTiny(root, recipe);
    const read = async (name: string) =>
      (await readFile(join(run.path, 'episodes', `${name}.jsonl`), 'utf8'))
        .trim()
        .split('\n')
        .map(
          (line) => JSON.parse(line) as { outcome: { right: boolean }; turns: { agent: string; advantage: number }[] },
        );
    const episodes = await read('step-000001');
    const attacks = episodes.flatMap(({ outcome, turns }) =>
      turns.flatMap(({ agent, advantage }) => (agent === 'adversary' ? [{ right: outcome.right, advantage }] : [])),
    );
    expect(attacks.length / episodes.length).toBeGreaterThan(0.2);
    expect(attacks.length / episodes.length).toBeLessThan(0.8);
    expect(attacks.some(({ advantage }) => advantage > 0)).toBe(true);
    for (const { right, advantage } of attacks)
      expect(right ? advantage <= 0 : advantage >= 0, `right ${right}, advantage ${advantage}`).toBe(true);
    const evaluated = await read('evaluation-000001');
    expect(evaluated.some(({ turns }) => turns.some(({ agent }) => agent === 'adversary'))).toBe(false);
  });
});
