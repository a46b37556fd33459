/** A run on a GPU that is interrupted: `npm run verify -- gpu-run`, minutes on a driver in software. */
import { join } from 'node:path';
import type { PlayProgress } from '@drmas/engine/host';
import { expect, it } from 'vitest';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { resume, train } from '../../src/runs/run/api.js';
import { eventsOf, filesOf, temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();

it('trains the team repair, and goes on after an interruption with the same bits', async () => {
  const set = [
    ...['backend.device=gpu', 'warmStart.steps=1', 'warmStart.batch=4', 'training.steps=2'],
    ...['training.tasksPerStep=1', 'training.groupSize=3', 'evaluation.tasks=1', 'evaluation.samples=1'],
  ];
  const [whole, again] = [join(root, 'whole'), join(root, 'again')];
  await train('repair', { run: whole, set, seed: 1 });
  const interruption = new AbortController();
  const onProgress = ({ phase, step }: PlayProgress) => {
    if (phase === 'training' && step === 2) interruption.abort();
  };
  const stopped = train('repair', { run: again, set, seed: 1, onProgress, signal: interruption.signal });
  await expect(stopped).rejects.toThrow();
  await resume(again);
  const [one, two] = [await RunDirectory.open(whole), await RunDirectory.open(again)];
  expect(await eventsOf(two)).toEqual(await eventsOf(one));
  expect(await filesOf(two)).toMatchObject(await filesOf(one));
});
