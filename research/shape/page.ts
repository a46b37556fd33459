/** The page of the study, docs/research/shape.md, with its tables between markers. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const PAGE = join(import.meta.dirname, '../../docs/research/shape.md');

/** Writes each table between `<!-- results: NAME -->` and `<!-- end -->`. @throws Error if the page lacks a marker */
export async function fillPage(tables: Readonly<Record<string, string>>): Promise<void> {
  let text = await readFile(PAGE, 'utf8');
  for (const [name, filled] of Object.entries(tables)) {
    const marked = new RegExp(`(<!-- results: ${name} -->\\n)[\\s\\S]*?(<!-- end -->)`);
    if (!marked.test(text)) throw new Error(`${PAGE} has no marker '${name}'`);
    text = text.replace(marked, (_, before: string, after: string) => `${before}${filled}\n${after}`);
  }
  await writeFile(PAGE, text);
}
