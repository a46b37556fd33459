/** Door of `gateway`: rollouts whose agents other programs can call. */
export { type OpenRollouts, openRollouts } from './rollouts/open-rollouts.js';
export { rolloutContext } from './rollouts/rollouts.js';
