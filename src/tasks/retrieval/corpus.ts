import { TaskError } from '../../core/errors.js';
import { fieldOf, shown } from '../json-fields.js';
import { jsonRows } from '../json-rows.js';
import { readTextFile } from '../text-file.js';
import type { Passage } from './retriever.js';

export interface CorpusFields {
  /** Field that holds a passage's title. Default `title`. Dots lead into nested objects. */
  readonly title?: string;
  /** Field that holds its text. Default: `text`, or `contents`, whose first line is the title where the row has none. */
  readonly text?: string;
}

/**
 * The passages of a file of JSON lines or a JSON array, in its order.
 *
 * @throws TaskError with file and line where a row has no text.
 */
export async function readCorpus(file: string, fields: CorpusFields = {}): Promise<Passage[]> {
  const rows = jsonRows(await readTextFile(file), file);
  if (rows.length === 0) throw new TaskError('expected at least one passage, the file holds none', { file });
  return rows.map(({ line, value }) => {
    const title = fieldOf(value, fields.title ?? 'title');
    const text = fieldOf(value, fields.text ?? 'text');
    const contents = fields.text === undefined ? fieldOf(value, 'contents') : undefined;
    if (typeof text === 'string') return typeof title === 'string' ? { title, text } : { text };
    if (typeof contents === 'string')
      return typeof title === 'string' ? { title, text: contents } : passageOf(contents);
    const expected = fields.text === undefined ? '"text" or "contents"' : JSON.stringify(fields.text);
    throw new TaskError(`expected a JSON object with a string ${expected}, got ${shown(value)}`, { file, line });
  });
}

/** A passage in one string, as Search-R1's corpora write it: the title, which may be quoted, then from the next line the text. */
export function passageOf(contents: string): Passage {
  const end = contents.indexOf('\n');
  if (end < 0) return { text: contents };
  return { title: contents.slice(0, end).replace(/^"(.*)"$/, '$1'), text: contents.slice(end + 1) };
}
