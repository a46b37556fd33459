/** Door of `cluster`: rollouts on a queue of workers. */
export { queueExecutor } from './queue/queue-executor.js';
export { runWorker } from './queue/queue-worker.js';
