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

/** The longest wait of a timer, 24.8 days. A longer one overflows in Node and in browsers, and ends at once. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** A number of milliseconds from settings or from a server, as a timer can wait for it; NaN counts as 0. */
export const waitMs = (ms: number): number => Math.min(Math.max(0, ms) || 0, LONGEST_WAIT_MS);
