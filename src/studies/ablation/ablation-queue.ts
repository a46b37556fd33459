/** A queue of jobs, several of which run at once, while some wait until another is far enough. */

export interface QueuedJob {
  /** Jobs with the same lane wait until the first of them has opened it: they share what it prepares. */
  readonly lane: string;
  run(openLane: () => void): Promise<void>;
}

/**
 * Runs the jobs, `parallel` at a time, each the first of those that may begin. The lane of a job is open once it called
 * `openLane` or ended. After an error no further job begins; the error is thrown when the running ones have ended. One
 * limiter a lane would not do: the runs of a pair must stay together, so that an ablation that is cut short has whole
 * pairs.
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
