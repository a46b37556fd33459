/** A page of a study, with its tables between markers. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Writes each table between `<!-- results: NAME -->` and `<!-- end -->` of a page in docs/research.
 * @throws Error if the page lacks a marker
 */
export async function fillTables(name: string, tables: Readonly<Record<string, string>>): Promise<void> {
  const page = join(import.meta.dirname, '../../docs/research', name);
  let text = await readFile(page, 'utf8');
  for (const [place, filled] of Object.entries(tables)) {
    const marked = new RegExp(`(<!-- results: ${place} -->\\n)[\\s\\S]*?(<!-- end -->)`);
    if (!marked.test(text)) throw new Error(`${page} has no marker '${place}'`);
    text = text.replace(marked, (_, before: string, after: string) => `${before}${filled}\n${after}`);
  }
  await writeFile(page, text);
}
