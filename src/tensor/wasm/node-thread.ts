/** What a worker thread of Node runs (node-threads.ts). */
import { workerData } from 'node:worker_threads';
import { type ThreadSettings, workOn } from './thread-work.js';

workOn(workerData as ThreadSettings);
