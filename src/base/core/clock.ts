/** The source of time for runs; tests replace it. */
export interface Clock {
  /** Seconds since an arbitrary start; never runs backwards. */
  seconds(): number;
  /** The wall-clock time. */
  now(): Date;
}

export const systemClock: Clock = {
  seconds: () => performance.now() / 1000,
  now: () => new Date(),
};
