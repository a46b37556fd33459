/**
 * Links of the Markdown pages: each leads to a committed file, an existing heading, and a file that ships. Paths in
 * code, such as `src/index.ts`, must exist too.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';
import { markdownPages, readPage, root } from './pages.js';

/** The broken links of all pages, one line each. */
export function deadLinks(): string[] {
  const shipped = packedFiles();
  return markdownPages().flatMap((page) => [
    ...[...linksOf(readPage(page))].flatMap((link) => {
      const problem = problemOf(page, link, shipped);
      return problem === undefined ? [] : [`${page}: link to ${link}: ${problem}`];
    }),
    ...[...pathsOf(readPage(page))]
      .filter((path) => !existsSync(join(root, path)))
      .map((path) => `${page}: there is no ${path}`),
  ]);
}

function problemOf(page: string, link: string, shipped: ReadonlySet<string>): string | undefined {
  if (/^[a-z]+:/.test(link)) return undefined;
  const [file = '', anchor] = link.split('#');
  if (link === '') return 'it has no target';
  const path = file === '' ? page : posix.normalize(posix.join(posix.dirname(page), file));
  if (!existsSync(join(root, path))) return 'there is no such file';
  const isShipped = (name: string) => shipped.has(name) || [...shipped].some((other) => other.startsWith(`${name}/`));
  if (shipped.has(page) && !isShipped(path.replace(/\/$/, ''))) return 'the package ships the page and not the file';
  if (anchor === undefined) return undefined;
  return anchorsOf(readPage(path)).has(anchor) ? undefined : `no heading of ${path} has this anchor`;
}

/** The targets of all links outside code. */
function* linksOf(text: string): Generator<string> {
  for (const [, target = ''] of withoutCode(text).matchAll(/\]\(([^)\s]*)\)/g)) yield target;
}

/** The paths in code within a line that begin with a folder of the repository. */
function* pathsOf(text: string): Generator<string> {
  const folders = 'src|packages|docs|test|recipes|examples|scripts|research/bench|templates';
  for (const [, path = ''] of text.matchAll(new RegExp(`\`((?:${folders})/[\\w./-]+)\``, 'g'))) yield path;
}

const withoutCode = (text: string) => text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '`');

/** The anchors of a page: its headings, and anchors that it declares itself. */
function anchorsOf(text: string): ReadonlySet<string> {
  const named = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id);
  return new Set([...named, ...headingAnchors(text)]);
}

/** The anchors that GitHub gives the headings of a page. */
function headingAnchors(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  const withoutBlocks = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  for (const [, title = ''] of withoutBlocks.matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const slug = slugOf(title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'));
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** GitHub's anchor of a heading without links, before a number is appended to a repeated one. */
export const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');

/** The paths of the files that `npm pack` takes. */
function packedFiles(): ReadonlySet<string> {
  const printed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [packed] = JSON.parse(printed) as { files: { path: string }[] }[];
  return new Set(packed?.files.map(({ path }) => path));
}
