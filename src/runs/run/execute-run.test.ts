import { describe, expect, it } from 'vitest';
import { createRun, temporaryRoot, tinyRecipe } from '../../../test/support/tiny-run.js';
import { nodeHost } from '../../base/platform/node-host.js';
import { executeRun } from './execute-run.js';

const root = temporaryRoot();

describe('executeRun', () => {
  it('protects every checkpoint, the one of an interruption too, from being cut short', async () => {
    const recipe = tinyRecipe({}, ['training.steps=2', 'training.checkpointEvery=1', 'evaluation.tasks=1']);
    const controller = new AbortController();
    const log = await createRun(root, recipe, {
      listeners: [{ event: ({ type }) => void (type === 'step' && controller.abort(new Error('enough'))) }],
    });
    const protectedAt: boolean[] = [];
    const host = nodeHost({
      threads: 1,
      signal: controller.signal,
      protect: (work) => {
        protectedAt.push(controller.signal.aborted);
        return work();
      },
    });
    await expect(executeRun(recipe, log, host)).rejects.toThrow('enough');
    expect(protectedAt).toEqual([true]);
    expect((await log.latestCheckpoint())?.step).toBe(1);

    const whole = await createRun(root, recipe);
    protectedAt.length = 0;
    await executeRun(recipe, whole, { ...host, signal: new AbortController().signal });
    expect(protectedAt).toHaveLength((await whole.events()).filter(({ type }) => type === 'checkpoint').length);
  });

  it('writes no checkpoint while the warm start is under way', { tags: 'verify' }, async () => {
    const recipe = tinyRecipe({}, ['warmStart.seed=91', 'warmStart.steps=60']);
    const controller = new AbortController();
    const log = await createRun(root, recipe, {
      listeners: [{ event: ({ type }) => void (type === 'warmup' && controller.abort(new Error('enough'))) }],
    });
    await expect(executeRun(recipe, log, nodeHost({ threads: 1, signal: controller.signal }))).rejects.toThrow(
      'enough',
    );
    expect(await log.latestCheckpoint()).toBeUndefined();
    expect((await log.events()).at(-1)).toMatchObject({ type: 'run.finished', reason: 'stopped', steps: 0 });
  });
});
