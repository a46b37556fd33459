import { TaskError } from '@drmas/engine/errors';
import { fileRows, formatOf, ROW_NAMES } from '../files/file-rows.js';
import { fieldOf, shown } from '../files/row-fields.js';
import type { Passage } from './retriever.js';

/** The names of the fields of a corpus file. */
export interface CorpusFields {
  /** The field of a passage's title. Default `title`. Dots lead into nested objects. */
  readonly title?: string;
  /** The field of the text. Default: `text`, or `contents`, whose first line is the title if the row has no title. */
  readonly text?: string;
}

/**
 * Reads the passages of a file in its order: JSON lines, a JSON array, CSV or Parquet, by its extension.
 *
 * @throws TaskError with file and line if a row has no text.
 *
 * @example
 * ```ts
 * import { readCorpus } from 'drmas/tasks';
 *
 * const passages = await readCorpus('passages.jsonl', { text: 'body' });
 * ```
 */
export async function readCorpus(file: string, fields: CorpusFields = {}): Promise<Passage[]> {
  const passages: Passage[] = [];
  for await (const { place, value } of fileRows(file)) {
    const passage = passageIn(value, fields);
    const expected = fields.text === undefined ? '"text" or "contents"' : JSON.stringify(fields.text);
    if (passage === undefined)
      throw new TaskError(`expected ${ROW_NAMES[formatOf(file)]} with a string ${expected}, got ${shown(value)}`, {
        file,
        ...place,
      });
    passages.push(passage);
  }
  if (passages.length === 0) throw new TaskError('expected at least one passage, the file holds none', { file });
  return passages;
}

function passageIn(row: unknown, fields: CorpusFields): Passage | undefined {
  const title = fieldOf(row, fields.title ?? 'title');
  const text = fieldOf(row, fields.text ?? 'text');
  const contents = fields.text === undefined ? fieldOf(row, 'contents') : undefined;
  if (typeof text === 'string') return typeof title === 'string' ? { title, text } : { text };
  if (typeof contents !== 'string') return undefined;
  return typeof title === 'string' ? { title, text: contents } : passageOf(contents);
}

/** Splits a passage of Search-R1's corpora, one string with the title, which may be quoted, in the first line. */
export function passageOf(contents: string): Passage {
  const end = contents.indexOf('\n');
  if (end < 0) return { text: contents };
  return { title: contents.slice(0, end).replace(/^"(.*)"$/, '$1'), text: contents.slice(end + 1) };
}
