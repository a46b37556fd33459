/** Door of `cluster`: runs as jobs of a Ray cluster. */
export { RayRuns } from './ray/ray-runs.js';
