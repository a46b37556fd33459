import { permutation, RandomStream } from '../core/random.js';
import type { Task, TaskSet } from '../core/task.js';

/** Generated families have no end; their tasks are drawn from this many indices. */
const GENERATED_INDICES = 2 ** 48;

/**
 * The tasks of a step (1, 2, ...), a pure function of the seed: a finite set is walked in a new order every epoch, an endless
 * one is drawn from.
 */
export function tasksOfStep(tasks: TaskSet, seed: number, step: number, count: number): Task[] {
  const first = (step - 1) * count;
  if (!Number.isFinite(tasks.size)) {
    return Array.from({ length: count }, (_, i) => {
      const random = new RandomStream('tasks', seed, first + i);
      return tasks.at(Math.floor(random.uniform() * GENERATED_INDICES));
    });
  }
  const orders = new Map<number, Uint32Array>();
  return Array.from({ length: count }, (_, i) => {
    const epoch = Math.floor((first + i) / tasks.size);
    const order = orders.get(epoch) ?? permutation(tasks.size, 'tasks', seed, epoch);
    orders.set(epoch, order);
    return tasks.at(order[(first + i) % tasks.size] as number);
  });
}

/** The first tasks of a set, for evaluation: the same ones every time. */
export function firstTasks(tasks: TaskSet, count: number): Task[] {
  return Array.from({ length: Math.min(count, tasks.size) }, (_, i) => tasks.at(i));
}
