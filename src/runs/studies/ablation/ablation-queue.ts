/** A queue of jobs. Several run at once, and some wait until another job has reached a point. */

export interface QueuedJob {
  /**
   * Jobs with the same lane wait until the first of them has opened it, because they share the first job's preparation.
   */
  readonly lane: string;
  run(openLane: () => void): Promise<void>;
}

/**
 * Runs the jobs, `parallel` at a time. The next job is the first of those that may begin. The lane of a job is open
 * after it called `openLane` or ended. After an error no further job begins, and the error is thrown after the running
 * jobs have ended. A limiter for each lane would not suffice: the runs of a pair must stay together, so that an
 * interrupted ablation has complete pairs.
 */
export async function runQueue(jobs: readonly QueuedJob[], parallel: number): Promise<void> {
  const waiting = [...jobs];
  const lanes = new Map<string, 'closed' | 'open'>();
  const errors: unknown[] = [];
  let running = 0;
  await new Promise<void>((resolve) => {
    const begin = () => {
      while (errors.length === 0 && running < parallel) {
        const next = waiting.findIndex(({ lane }) => lanes.get(lane) !== 'closed');
        const [job] = next < 0 ? [] : waiting.splice(next, 1);
        if (job === undefined) break;
        running++;
        if (!lanes.has(job.lane)) lanes.set(job.lane, 'closed');
        const open = () => {
          if (lanes.get(job.lane) === 'open') return;
          lanes.set(job.lane, 'open');
          begin();
        };
        job
          .run(open)
          .catch((error: unknown) => errors.push(error))
          .finally(() => {
            running--;
            lanes.set(job.lane, 'open');
            begin();
          });
      }
      if (running === 0) resolve();
    };
    begin();
  });
  if (errors.length > 0) throw errors[0];
}
