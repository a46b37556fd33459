/** The numbers that the watchdog and the watched thread share, by their places. */
export type SharedCounters = Int32Array<SharedArrayBuffer>;

/** Grows as long as the watched thread comes round to its timers. */
export const BEATS = 0;
/** How many rollouts are under way. */
export const WATCHING = 1;
/** Milliseconds without a beat until the watchdog says so. */
export const TELL_AFTER = 2;
/** Milliseconds without a beat until the watchdog ends the process; 0 before the first rollout. */
export const END_AFTER = 3;
/** The limit of the watched thread's objects, in MB. */
export const HEAP_LIMIT = 4;
/** The size of the watched thread's objects at its last beat, in MB. */
export const HEAP_USED = 5;
export const NUMBERS = 6;

/** The name of the object through which the watchdog asks inside the watched thread. */
export const QUESTIONS = 'drmas.blocked';

/** The questions of the watchdog. It asks them on top of the code that the watched thread runs. */
export interface Questions {
  /**
   * The code that runs. Signals get their default effect then, which ends the process: nothing else hears them. The
   * listeners come back with the next beat.
   */
  look(): Look;
  /** Ends the process with exit code 1. */
  end(): void;
}

export interface Look {
  /** `engine`: code of drmas, which may take its time. `unknown`: between two pieces of code, such as microtasks. */
  readonly owner: 'engine' | 'team' | 'unknown';
  /** The episode that the code belongs to. Empty if it belongs to none. */
  readonly scope: string;
  /** The stack of the code, innermost call first. Empty if it is unknown. */
  readonly place: string;
}
