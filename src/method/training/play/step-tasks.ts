import { DrmasError, isObject, messageOf, shown, TaskError } from '@drmas/engine/errors';
import { permutation, RandomStream } from '@drmas/engine/math';
import {
  contentText,
  type DataSchema,
  GENERATED_INDICES,
  type LoadOptions,
  type Split,
  type Task,
  type TaskSet,
  type TaskSource,
  type Trace,
} from '@drmas/engine/nouns';
import { placeOf } from '../../../teams/rollout.js';

// Calls of task sources. An error that the source's own code throws names the source and the line of code. So does an
// answer that is no set, no task or no demonstration.

/** Loads the tasks of a split, and tries the first and the last task, twice each. @throws TaskError */
export async function loadTasks(
  source: TaskSource,
  split: Split,
  schema: DataSchema<unknown>,
  options: LoadOptions = {},
): Promise<TaskSet> {
  let tasks: unknown;
  try {
    tasks = await source.load(split, schema, options);
  } catch (error) {
    throw thrownBy(source.name, `while '${split}' was loaded`, error);
  }
  return checkedSet(source.name, split, tasks);
}

/** A set whose first and last task can be read, and stay the same. @throws TaskError */
function checkedSet(source: string, split: Split, set: unknown): TaskSet {
  const wrong = (what: string) => new TaskError(`the tasks '${source}': \`load('${split}')\` ${what}`);
  if (!isObject(set)) throw wrong(`gave ${shown(set)}, expected an object with name, size and at`);
  const { size, at, parts = [] } = set as Partial<TaskSet>;
  if (!Array.isArray(parts)) throw wrong(`gave parts that are ${shown(parts)}, expected a list of sets`);
  if (size !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(size) && (size as number) >= 0))
    throw wrong(`gave the size ${shown(size)}, expected a whole number of at least 0, or Number.POSITIVE_INFINITY`);
  if (typeof at !== 'function') throw wrong(`gave a set whose \`at\` is ${shown(at)}, expected a function`);
  const tasks = set as unknown as TaskSet;
  for (const part of parts) checkedSet(isObject(part) ? String(part.name) : source, split, part);
  const ends = size === 0 ? [] : Number.isFinite(size) ? [0, tasks.size - 1] : [0];
  for (const index of ends) {
    const [one, again] = [taskAt(tasks, index), taskAt(tasks, index)];
    if (one.id !== again.id || contentText(one.data) !== contentText(again.data))
      throw wrong(
        `gave a set whose \`at(${index})\` gives another task each time: evaluations would compare different tasks. Draw random numbers from new RandomStream('${source}', index)`,
      );
  }
  return tasks;
}

/** The task at an index. @throws TaskError */
export function taskAt(tasks: TaskSet, index: number): Task {
  let task: unknown;
  try {
    task = tasks.at(index);
  } catch (error) {
    throw thrownBy(tasks.name, `at task ${index}`, error);
  }
  const wrong = (what: string) => new TaskError(`the tasks '${tasks.name}': \`at(${index})\` gave ${what}`);
  if (isPromise(task)) throw wrong('a promise, expected a task: `at` must not be async; read what it needs in `load`');
  if (!isObject(task))
    throw wrong(`${shown(task)}, expected a task: an object with id and data (the set has the size ${tasks.size})`);
  if (typeof task.id !== 'string' || task.id === '')
    throw wrong(`a task with the id ${shown(task.id)}, expected a text that no other task has`);
  if (!('data' in task)) throw wrong(`the task '${task.id}' without data, expected what the team plays with`);
  if (isPromise(task.data)) throw wrong(`the task '${task.id}' whose data are a promise: read them in \`load\``);
  return task as unknown as Task;
}

const isPromise = (value: unknown) => isObject(value) && typeof value.then === 'function';

/** Draws a demonstration. Undefined if the source has none. @throws TaskError */
export function drawTrace(source: TaskSource, random: RandomStream, split: Split): Trace | undefined {
  if (source.trace === undefined) return undefined;
  let trace: unknown;
  try {
    trace = source.trace(random, split);
  } catch (error) {
    throw thrownBy(source.name, 'for a demonstration', error);
  }
  const wrong = (what: string) => new TaskError(`the tasks '${source.name}': \`trace\` gave ${what}`);
  if (isPromise(trace)) throw wrong('a promise, expected a demonstration: `trace` must not be async');
  const { agent, messages, response } = (isObject(trace) ? trace : {}) as Partial<Trace>;
  if (typeof agent !== 'string' || !Array.isArray(messages) || typeof response !== 'string')
    throw wrong(`${shown(trace)}, expected a demonstration: an object with agent, messages and response`);
  return trace as Trace;
}

/** Errors of drmas already name the cause. */
function thrownBy(name: string, when: string, error: unknown): unknown {
  if (error instanceof DrmasError) return error;
  const place = placeOf(error)?.split('\n', 1)[0];
  const message = `the tasks '${name}' threw ${when}: ${messageOf(error)}${place === undefined ? '' : `\n${place}`}`;
  return Object.assign(new TaskError(message), { cause: error });
}

/**
 * The tasks of a step (1, 2, ...), a pure function of the seed. A finite set is played in a new order every epoch. From
 * an endless set the tasks are drawn.
 */
export function tasksOfStep(tasks: TaskSet, seed: number, step: number, count: number): Task[] {
  const first = (step - 1) * count;
  const indexOf = (i: number) => {
    if (!Number.isFinite(tasks.size))
      return Math.floor(new RandomStream('tasks', seed, first + i).uniform() * GENERATED_INDICES);
    const order = epochOrder(tasks, seed, Math.floor((first + i) / tasks.size));
    return order[(first + i) % tasks.size] as number;
  };
  const drawn = Array.from({ length: count }, (_, i) => taskAt(tasks, indexOf(i)));
  requireOneProblemEach(drawn, tasks.name);
  return drawn;
}

/** The most characters of a problem in a message. */
const SHOWN = 60;

/**
 * Adds a task to the tasks of a step, by their ids.
 * @throws TaskError if another problem has the id: the episodes of both would count as one task's
 */
function addTask(known: Map<string, Task>, task: Task, source: string): void {
  const other = known.get(task.id);
  known.set(task.id, task);
  if (other === undefined || other === task) return;
  const [one, two] = [other, task].map(({ data }) => contentText(data) ?? '');
  if (one === two) return;
  const problems = `${(one ?? '').slice(0, SHOWN)} and ${(two ?? '').slice(0, SHOWN)}`;
  throw new TaskError(
    `the tasks '${source}' have two problems with the id '${task.id}', ${problems}: expected an id for each`,
  );
}

interface EpochOrder {
  readonly seed: number;
  readonly epoch: number;
  readonly order: Uint32Array;
}

/** The order of a set's latest epoch: 4 bytes a task. */
const latest = new WeakMap<TaskSet, EpochOrder>();

/**
 * The indices of a finite set in the order of an epoch. Drawing the order takes a second for some million tasks, and
 * most steps are in the same epoch as the previous step.
 */
export function epochOrder(tasks: TaskSet, seed: number, epoch: number): Uint32Array {
  const known = latest.get(tasks);
  if (known?.seed === seed && known.epoch === epoch && known.order.length === tasks.size) return known.order;
  const order = permutation(tasks.size, 'tasks', seed, epoch);
  latest.set(tasks, { seed, epoch, order });
  return order;
}

/**
 * Further tasks for a step that needs more than its own, without the tasks in `taken`. A pure function of the seed and
 * the step, so that a resumed run draws the same tasks. Ends early if a finite set has no more tasks.
 */
export function* furtherTasks(tasks: TaskSet, seed: number, step: number, taken: readonly Task[]): Generator<Task> {
  const known = new Map(taken.map((task) => [task.id, task]));
  const order = Number.isFinite(tasks.size) ? permutation(tasks.size, 'further tasks', seed, step) : undefined;
  for (let i = 0; order === undefined || i < order.length; i++) {
    const random = () => new RandomStream('further tasks', seed, step, i).uniform();
    const task = taskAt(tasks, order === undefined ? Math.floor(random() * GENERATED_INDICES) : (order[i] as number));
    const isKnown = known.has(task.id);
    addTask(known, task, tasks.name);
    if (!isKnown) yield task;
  }
}

/**
 * The first tasks of a set, or of each of its parts, for evaluation: the same tasks each time.
 * @throws TaskError if two problems have one id: a comparison would take the episodes of one for the other's
 */
export function evaluationTasks(tasks: TaskSet, count: number): Task[] {
  const of = (set: TaskSet): Task[] =>
    set.parts?.flatMap(of) ?? Array.from({ length: Math.min(count, set.size) }, (_, i) => taskAt(set, i));
  const all = of(tasks);
  requireOneProblemEach(all, tasks.name);
  return all;
}

/** The number of `evaluationTasks`. */
export const evaluatedTasks = ({ parts, size }: TaskSet, count: number): number =>
  parts === undefined ? Math.min(size, count) : parts.reduce((sum, part) => sum + evaluatedTasks(part, count), 0);

/** @throws TaskError if two problems among the tasks have one id */
export function requireOneProblemEach(tasks: Iterable<Task>, source: string): void {
  const known = new Map<string, Task>();
  for (const task of tasks) addTask(known, task, source);
}
