import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { drmas, plainRecipe } from '../../../test/support/command-line.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';

const root = temporaryRoot();
const file = join(root, 'mine.ts');
beforeAll(() => writeFile(file, talkative));

/** It calls its solver once; a random model gives no right answer. */
const talkative = plainRecipe
  .replace('play: async () => 0', 'play: async ({ agents }) => { await agents.solver("Hello?"); return 0; }')
  .replaceAll('sampling: {}', 'sampling: { maxTokens: 4 }');

describe('plan --play', () => {
  it('prints the learning signal, three episodes in full, and that reinforcement will not help', async () => {
    const { code, out, err } = await drmas(['plan', file, '--play', '--tasks', '2', '--set', 'training.groupSize=3']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/played +2 tasks x 3 episodes, without training/);
    expect(out).toMatch(/2 \(100\.0 %\) all wrong/);
    expect(out).toMatch(/drmas +- +0\ngrpo +- +0/);
    expect(out.match(/solver <- user: Hello\?/g)).toHaveLength(3);
    expect(out).toMatch(/Reinforcement will not help with this recipe\.\n- Hardly a task is ever solved/);
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('counts on a terminal the episodes that are over, and leaves nothing of it behind', async () => {
    const words = ['plan', file, '--play', '--tasks', '40', '--set', 'training.groupSize=4'];
    const { out, err } = await drmas(words, { terminal: true });
    expect(err).toMatch(/^\rplayed \d+ of 160 episodes/);
    expect(err).toMatch(/\r +\r$/);
    expect(out).not.toContain('played 1 of');
    expect((await drmas([...words, '--json'], { terminal: true })).err).toBe('');
  });

  it('prints with --json the findings, and nothing else', async () => {
    const { code, out } = await drmas(['plan', file, '--play', '--tasks', '1', '--seed', '5', '--json']);
    expect(code).toBe(0);
    const findings = {
      tasks: 1,
      worthwhile: false,
      advice: [{ code: 'all-wrong', weight: 'stops' }],
      groups: { count: 1, signal: 0, allWrong: 1 },
    };
    expect(JSON.parse(out)).toMatchObject({
      type: 'plan',
      countedFrom: 'episodes',
      agents: { solver: { calls: 1 } },
      played: findings,
      time: { seconds: expect.any(Number) },
    });
    const former = await drmas(['probe', file, '--tasks', '1', '--seed', '5', '--json']);
    expect(former).toMatchObject({ code: 0, err: expect.stringMatching(/^drmas probe is now drmas plan --play/) });
    expect(JSON.parse(former.out)).toMatchObject({ type: 'probe', ...findings });
  });

  it.each([
    [['no-such-recipe'], /there is no recipe 'no-such-recipe'/],
    [['FILE', '--tasks', '0'], /expected an integer >= 1, got '0'/],
    [['FILE', '--from', root], /is not a run/],
    [['FILE', '--set', 'training.stepz=1'], /training\.stepz: unknown key/],
  ])('refuses %j', async (words, message) => {
    const { code, out, err } = await drmas(['plan', '--play', ...words.map((word) => (word === 'FILE' ? file : word))]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });

  it('ends with 130 when interrupted, and says that nothing is kept', async () => {
    const controller = new AbortController();
    controller.abort(new Error('Ctrl-C'));
    expect(await drmas(['plan', file, '--play'], { signal: controller.signal })).toMatchObject({
      code: 130,
      out: '',
      err: 'interrupted; the command stored nothing, start it again\n',
    });
  });
});
