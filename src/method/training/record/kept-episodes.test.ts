import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { stepsOf, temporaryRoot, tinyRecipe, trainTiny } from '../../../../test/support/tiny-run.js';
import { readEpisodes } from '../../store/episode-files.js';
import { keepsEpisodes } from './kept-episodes.js';

const root = temporaryRoot();

async function trained(overrides: readonly string[]) {
  const run = await trainTiny(root, tinyRecipe({}, ['training.steps=1', 'evaluation.every=100', ...overrides]));
  const episodes = await readEpisodes(nodeFiles, run.stepEpisodesPath(1));
  const [step] = await stepsOf(run);
  return { step, turns: episodes.flatMap(({ turns }) => turns) };
}

describe('kept episodes', () => {
  it('are written at every step, at every N-th, or at none', () => {
    const kept = (value: unknown) => {
      const recipe = tinyRecipe({}, [`training.keepEpisodes=${value}`]);
      return [1, 2, 3, 4].filter((step) => keepsEpisodes(recipe.training, step));
    };
    expect([kept(true), kept(2), kept(false)]).toEqual([[1, 2, 3, 4], [2, 4], []]);
  });

  it('have one ratio of 1 a turn after a single update on fresh samples', async () => {
    const { turns } = await trained([]);
    const learnt = turns.filter(({ advantage }) => advantage !== 0);
    expect(learnt.length).toBeGreaterThan(0);
    for (const turn of learnt) expect([turn.ratio, turn.clipped]).toEqual([1, undefined]);
  });

  it('have the ratios of the last update that used a token', { tags: 'verify' }, async () => {
    const { turns, step } = await trained([
      ...['solver', 'verifier'].flatMap((policy) => [
        `policies.${policy}.epochs=3`,
        `policies.${policy}.optimizer.learningRate=0.05`,
      ]),
      'loss.clip=0.05',
    ]);
    const learnt = turns.filter(({ ratio }) => Array.isArray(ratio));
    expect(learnt.length).toBeGreaterThan(0);
    for (const { ratio, response } of learnt) expect(ratio).toHaveLength(response.length);
    const clipped = learnt.flatMap(({ ratio, clipped = [], advantage }) =>
      clipped.map((t) => [(ratio as number[])[t] ?? Number.NaN, Number(advantage)] as const),
    );
    expect(clipped.length).toBeGreaterThan(0);
    // Clipping stops a token that has already moved in the direction of its advantage.
    for (const [ratio, advantage] of clipped) expect(advantage > 0 ? ratio - 1 : 1 - ratio).toBeGreaterThan(0.049);
    expect(step?.agents.solver?.clipFraction).toBeGreaterThan(0);
  });
});
