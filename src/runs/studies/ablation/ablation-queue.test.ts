import { describe, expect, it } from 'vitest';
import { type QueuedJob, runQueue } from './ablation-queue.js';

const tick = () => new Promise((resolve) => setTimeout(resolve, 1));

/** Jobs that record their beginning and end. A job opens its lane halfway. */
function jobs(lanes: readonly string[], fails = -1) {
  const log: string[] = [];
  let [running, most] = [0, 0];
  const queued = lanes.map(
    (lane, i): QueuedJob => ({
      lane,
      async run(openLane) {
        most = Math.max(most, ++running);
        log.push(`${lane}${i} begins`);
        await tick();
        openLane();
        await tick();
        if (i === fails) throw new Error(`job ${i} failed`);
        log.push(`${lane}${i} ends`);
        running--;
      },
    }),
  );
  return { queued, log, most: () => most };
}

describe('runQueue', () => {
  it('runs one after another in order', async () => {
    const { queued, log, most } = jobs(['a', 'a', 'b']);
    await runQueue(queued, 1);
    expect(log).toEqual(['a0 begins', 'a0 ends', 'a1 begins', 'a1 ends', 'b2 begins', 'b2 ends']);
    expect(most()).toBe(1);
  });

  it('takes a job of another lane while a lane is closed', async () => {
    const { queued, log, most } = jobs(['a', 'a', 'b', 'b']);
    await runQueue(queued, 2);
    expect(log.slice(0, 2)).toEqual(['a0 begins', 'b2 begins']);
    expect(log).toHaveLength(8);
    expect(most()).toBe(2);
  });

  it('begins the others of a lane as soon as it is open', async () => {
    const { queued, log } = jobs(['a', 'a', 'a']);
    await runQueue(queued, 3);
    expect(log.slice(0, 3)).toEqual(['a0 begins', 'a1 begins', 'a2 begins']);
  });

  it('begins nothing after an error, and waits for the running jobs', async () => {
    const { queued, log } = jobs(['a', 'b', 'c'], 0);
    await expect(runQueue(queued, 2)).rejects.toThrow('job 0 failed');
    expect(log).toEqual(['a0 begins', 'b1 begins', 'b1 ends']);
  });
});
