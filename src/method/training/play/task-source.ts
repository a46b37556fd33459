/** Calls of task sources. An error that the source's own code throws names the source and the line of code. */
import { DrmasError, messageOf, TaskError } from '../../../base/errors.js';
import type { RandomStream } from '../../../base/math.js';
import type { DataSchema, Split, Task, TaskSet, TaskSource, Trace } from '../../../base/nouns.js';
import { placeOf } from '../../../teams/rollout.js';

/** Loads the tasks of a split. @throws TaskError */
export async function loadTasks(source: TaskSource, split: Split, schema: DataSchema<unknown>): Promise<TaskSet> {
  try {
    return await source.load(split, schema);
  } catch (error) {
    throw thrownBy(source.name, `while '${split}' was loaded`, error);
  }
}

/** The task at an index. @throws TaskError */
export function taskAt(tasks: TaskSet, index: number): Task {
  try {
    return tasks.at(index);
  } catch (error) {
    throw thrownBy(tasks.name, `at task ${index}`, error);
  }
}

/** Draws a demonstration. Undefined if the source has none. @throws TaskError */
export function drawTrace(source: TaskSource, random: RandomStream, split: Split): Trace | undefined {
  try {
    return source.trace?.(random, split);
  } catch (error) {
    throw thrownBy(source.name, 'for a demonstration', error);
  }
}

/** Errors of drmas already name the cause. */
function thrownBy(name: string, when: string, error: unknown): unknown {
  if (error instanceof DrmasError) return error;
  const place = placeOf(error)?.split('\n', 1)[0];
  const message = `the tasks '${name}' threw ${when}: ${messageOf(error)}${place === undefined ? '' : `\n${place}`}`;
  return Object.assign(new TaskError(message), { cause: error });
}
