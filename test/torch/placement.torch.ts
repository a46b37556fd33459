/** Policies on devices of their own: the bits of one worker, and one clear line if one of two workers dies. */

import { nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { frozen } from '../../src/method/recipe/frozen.js';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { takesTime } from '../support/time-and-chance.js';
import { createRun, filesOf, temporaryRoot, tinyModel, tinyRecipe, trainTiny } from '../support/tiny-run.js';
import { childrenOf, isAlive } from './child-processes.js';
import { torchPython } from './torch-python.js';

const available = await torchPython();
const root = temporaryRoot();

const onTorch = ['backend.device=torch-cpu', 'warmStart.share=policy'];
const apart = [...onTorch, 'policies.verifier.device=torch-cpu:1'];
/** The hashes of weights, optimisers and episodes. The state of a checkpoint names the settings, which differ. */
const bitsOf = async (run: RunDirectory) =>
  Object.fromEntries(Object.entries(await filesOf(run)).filter(([name]) => !name.endsWith('state.json')));
const workers = () => childrenOf(process.pid, 'drmas_torch');

describe.skipIf(!available || process.platform !== 'linux')('two policies on PyTorch', () => {
  it('have the bits of one worker on a worker each, and references follow their policies', async () => {
    const withReference = 'policies.verifier.kl={"coefficient":0.1,"reference":{"type":"initial"}}';
    const together = await trainTiny(root, tinyRecipe({}, [...onTorch, withReference]));
    const recipe = tinyRecipe({}, [...apart, withReference]);
    const run = await createRun(root, recipe);
    const training = executeRun(recipe, run, nodeHost({ threads: 1 }));
    let most = 0;
    let isOver = false;
    void training.then(() => {
      isOver = true;
    });
    while (!isOver) {
      most = Math.max(most, (await workers()).length);
      await takesTime(20);
    }
    await training;
    expect(most).toBe(2);
    expect(await bitsOf(run)).toEqual(await bitsOf(together));
    expect(await workers()).toEqual([]);
  });

  it('end with one line that names the engine when one of two workers dies, and leave no process', async () => {
    const recipe = tinyRecipe({}, [...apart, 'training.steps=1000']);
    const run = await createRun(root, recipe);
    const training = executeRun(recipe, run, nodeHost({ threads: 1 })).catch((error: unknown) => error);
    while ((await run.latestCheckpoint().catch(() => undefined)) === undefined) await takesTime(50);
    const both = await workers();
    expect(both).toHaveLength(2);
    process.kill(both[1] as number, 'SIGKILL');
    const error = await training;
    expect(String(error)).toMatch(/^\w+: [^\n]*the engine on PyTorch ended with SIGKILL[^\n]*$/);
    for (let tries = 0; tries < 100 && (await Promise.all(both.map(isAlive))).includes(true); tries++)
      await takesTime(100);
    expect(await Promise.all(both.map(isAlive))).not.toContain(true);
  });

  it('play beside a frozen agent on its own device', async () => {
    const beside = (verifier: ReturnType<typeof frozen>) =>
      trainTiny(root, tinyRecipe({ assign: { solver: 'solver', verifier } }, onTorch));
    const placed = await beside(frozen(tinyModel, { device: 'torch-cpu:1' }));
    const together = await beside(frozen(tinyModel));
    expect(await bitsOf(placed)).toEqual(await bitsOf(together));
  });
});
