import { issuesText, shown, TaskError } from '@drmas/engine/errors';
import type { Task, TaskSource } from '@drmas/engine/nouns';
import { distinctIds, fieldOf, idOf, metadataOf, withTextAnswer } from './files/row-fields.js';

/**
 * A list of tasks as a source. Each element is the data of a task; its field `id`, if it has one, is the task's id.
 * @param name The setting that holds the list: errors and ids of other tasks name it
 */
export function listSource<Data>(list: readonly Data[], name: string): TaskSource<Data> {
  return {
    name,
    async load(_, schema) {
      if (list.length === 0) throw new TaskError('expected at least one task, the list is empty', { file: name });
      const idsSeen = distinctIds();
      const tasks = list.map((given, i): Task<Data> => {
        const where = { file: name, row: i + 1 };
        const row = Object(given);
        const id = idsSeen(idOf(row, undefined), fieldOf(row, 'data_source'), where) ?? `${name}:${i + 1}`;
        const metadata = metadataOf(row, undefined);
        const read = (data: unknown) => schema?.safeParse(data) ?? { success: true, data: given };
        const whole = read(given);
        // As in a file, a number is the text of an answer if the team reads texts alone.
        const asText = whole.success || typeof row.answer !== 'number' ? whole : read(withTextAnswer(row));
        const checked = asText.success ? asText : whole;
        if (checked.success) return { id, data: checked.data, ...(metadata && { metadata }) };
        const faults = issuesText(checked.error.issues);
        throw new TaskError(`does not fit the team's task: ${faults}, got ${shown(given)}`, where);
      });
      return { name, size: tasks.length, at: (index) => tasks[index] as Task<Data> };
    },
  };
}
