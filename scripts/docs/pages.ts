/** The repository's Markdown pages, and the marked regions in them that are generated. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** A file that `npm run docs` writes, by its path from the root. */
export interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

/** A generated part of hand-written pages: the text between two marks. */
export interface Region {
  /** The name in the mark `<!-- generated: NAME -->`. */
  readonly name: string;
  render(): string | Promise<string>;
}

export const readPage = (path: string) => readFileSync(join(root, path), 'utf8');

/** The paths of all Markdown pages that git knows or would take, from the root. */
export function markdownPages(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--', '*.md'], {
    cwd: root,
    encoding: 'utf8',
  });
  return listed.split('\n').filter((path) => path !== '' && existsSync(join(root, path)));
}

const MARK = /^<!-- generated: (\S+) -->$([\s\S]*?)^<!-- \/generated -->$/gm;
/** A number within a sentence: of the bench, or of a first run. */
const QUOTED = /<!-- (bench|run): (.*?) -->.*?<!-- end -->/gs;

/**
 * All pages with a marked region or a marked number, with their correct content.
 * @param numbers The number for the words in the mark `<!-- KIND: WORDS -->`, by kind
 * @throws Error for a mark without a generated region, and for a region without a mark
 */
export async function withRegions(
  regions: readonly Region[],
  numbers: Readonly<Record<'bench' | 'run', (words: string) => string>>,
): Promise<GeneratedFile[]> {
  const rendered = new Map<string, string>();
  for (const { name, render } of regions) rendered.set(name, (await render()).trim());
  const used = new Set<string>();
  const pages = markdownPages().map((path): GeneratedFile => {
    const filled = readPage(path).replace(MARK, (_, name: string) => {
      const content = rendered.get(name);
      if (content === undefined) throw new Error(`${path}: no region is named '${name}'`);
      used.add(name);
      return `<!-- generated: ${name} -->\n${content}\n<!-- /generated -->`;
    });
    const text = filled.replace(
      QUOTED,
      (_, kind: 'bench' | 'run', words: string) => `<!-- ${kind}: ${words} -->${numbers[kind](words)}<!-- end -->`,
    );
    return { path, text };
  });
  const unused = regions.filter(({ name }) => !used.has(name)).map(({ name }) => name);
  if (unused.length > 0) throw new Error(`no page has a mark for: ${unused.join(', ')}`);
  return pages.filter(({ text }) => /<!-- (generated|bench|run): /.test(text));
}

/** The first block of a language below a heading of the third level. @throws Error if there is none */
export function pageCode(path: string, title: string, language: string): string {
  const [, section = ''] = readPage(path).split(`\n### ${title}\n`);
  const [, code] = new RegExp(`\`\`\`${language}\\b[^\\n]*\\n(.*?)\`\`\``, 's').exec(section) ?? [];
  if (code === undefined) throw new Error(`${path} has no ${language} below ${title}`);
  return code;
}

/** A Markdown table. A `|` inside a cell is escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll(/(?<!\\)\|/g, '\\|').replaceAll(/\s*\n\s*/g, ' ')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
