/** The tests of a team of a framework that leaves empty messages out of its conversations. */
import { describe, expect, it } from 'vitest';
import { type DeskPlay, type DeskRun, LEARNING, plainPlay, rises, trainDesk } from './desk.js';

/** @param root The folder of the runs */
export function testWithoutEmptyMessages(framework: string, root: string, play: DeskPlay): void {
  describe(`a team of ${framework}`, () => {
    it('says what plain calls of agents say, bit for bit, but behind the empty messages that it leaves out', async () => {
      const overrides = ['training.steps=1'];
      const plain = await trainDesk(root, plainPlay, { overrides });
      const sampled = sampledBehindWords(plain, plain);
      expect(sampled.length).toBeGreaterThan(plain.turns.length / 2);
      expect(sampledBehindWords(await trainDesk(root, play, { overrides }), plain)).toEqual(sampled);
    });

    it('learns', async () => {
      const { rewards, failures } = await trainDesk(root, play, { overrides: LEARNING });
      expect(failures).toEqual([]);
      expect(rises(rewards)).toBe(true);
    });
  });
}

/**
 * The samples of a run of one step, in those episodes of the plain run whose boss ended its turn with a word: behind an
 * empty message the helper reads something else.
 */
function sampledBehindWords(run: DeskRun, plain: DeskRun): unknown[] {
  return plain.turns.flatMap(({ turns }, i) =>
    turns.at(-2)?.response.length === 1 ? [] : [run.turns[i]?.turns.map(({ advantage: _, ...turn }) => turn)],
  );
}
