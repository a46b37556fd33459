export type { Task } from './core/task.js';
