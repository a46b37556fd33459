/** Time as the loop sees it, so that tests can replace it. */
export interface Clock {
  /** Seconds since an arbitrary start; never runs backwards. */
  seconds(): number;
  /** Wall-clock time. */
  now(): Date;
}

export const systemClock: Clock = {
  seconds: () => performance.now() / 1000,
  now: () => new Date(),
};
