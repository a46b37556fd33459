/** The numbers that the watchdog and the watched thread share, by their places. */
export type SharedCounters = Int32Array<SharedArrayBuffer>;

/** Grows as long as the watched thread comes round to its timers. */
export const BEATS = 0;
/** How many rollouts are under way. */
export const WATCHING = 1;
/** Milliseconds without a beat until the watchdog says so. */
export const TELL_AFTER = 2;
/** Milliseconds without a beat until the watchdog ends the process. */
export const END_AFTER = 3;
