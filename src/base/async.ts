/** Door of `base`: waiting: turns of the event loop, and promises that a signal ends. */
export { macrotask, nextMacrotask } from './platform/macrotask.js';
export { onAbort, unlessAborted } from './platform/on-abort.js';
