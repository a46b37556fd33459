import type { Worker } from 'node:worker_threads';
import { startWorker } from '../../platform.js';
import type { StartThread } from './thread-pool.js';

/** A worker thread of Node. A process does not live on for its sake. */
export function startNodeThread(...[settings, onFailure]: Parameters<StartThread>): Worker {
  const worker = startWorker('./node-thread', import.meta.url, settings);
  worker.unref();
  worker.on('error', (error) => onFailure(error.message));
  worker.on('exit', (code) => {
    if (code !== 0) onFailure(`it ended with code ${code}`);
  });
  return worker;
}
