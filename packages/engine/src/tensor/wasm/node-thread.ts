/** The entry of a worker thread of Node that works on kernels; node-threads.ts starts it. */
import { workerData } from 'node:worker_threads';
import { type ThreadSettings, workOn } from './thread-work.js';

workOn(workerData as ThreadSettings);
