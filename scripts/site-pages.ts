/** The pages of the documentation site, made from README.md, docs/ and two files of the project. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { markdownPages, readPage } from './docs/pages.js';

export interface SitePage {
  /** The path of the page in the site's folder of pages. */
  readonly path: string;
  readonly title: string;
  /** The Markdown for VitePress. */
  readonly text: string;
  /** The Markdown as the repository has it. */
  readonly plain: string;
}

/** The data that the site takes from the repository beside its pages. */
export interface SiteData {
  readonly version: string;
  /** The address of the repository's files; absent if it is not known. */
  readonly files?: string;
  /** The groups of docs/README.md. */
  readonly groups: readonly {
    readonly text: string;
    readonly items: readonly { readonly text: string; readonly link: string }[];
  }[];
}

/** The page of the API has a section a subpath; each becomes a page. */
const API = 'docs/reference/api.md';
/** The home page, which the theme draws. Programs that read get the list of pages in its place. */
const HOME: SitePage = {
  path: 'index.md',
  title: 'drmas',
  text: '---\nlayout: page\ntitle: drmas\ntitleTemplate: teams of LLM agents, trained in TypeScript\nsidebar: false\n---\n',
  plain: '# drmas\n\n[What drmas is](about.md). [All pages](pages.md).\n',
};
const PROJECT = ['CONTRIBUTING.md', 'CHANGELOG.md'];

/** The place of a file of the repository in the site; undefined if the site does not have it. */
export function placeInSite(path: string): string | undefined {
  if (path === 'README.md') return 'about.md';
  if (path === 'docs/README.md') return 'pages.md';
  if (path === 'examples/README.md') return 'examples.md';
  if (PROJECT.includes(path)) return `project/${path}`;
  const below = /^docs\/(.+\.md)$/.exec(path)?.[1];
  return below?.replace(/README\.md$/, 'index.md');
}

/**
 * All pages. @param files the address of the repository's files, for links to files that the site does not have;
 * without it such a link becomes the text alone
 */
export function sitePages(files?: string): SitePage[] {
  const sources = new Set(markdownPages().filter((path) => placeInSite(path) !== undefined));
  const pages = [...sources].flatMap((source) => {
    const plain = readPage(source);
    const path = placeInSite(source) as string;
    const page = { path, title: titleOf(plain), text: pageText(source, plain, sources, files), plain };
    return source === API ? [page, ...subpaths(page.text, frontmatter(source, files))] : [page];
  });
  return [HOME, ...pages];
}

const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? '';

function pageText(source: string, plain: string, sources: ReadonlySet<string>, files: string | undefined): string {
  const here = placeInSite(source) as string;
  const text = withoutMarks(plain).replaceAll(LINK, (whole, mark: string, target: string, anchor = '') => {
    if (/^(https?:|#|mailto:)/.test(target) || target === '') return whole;
    const full = posix.normalize(posix.join(dirname(source), target)).replace(/\/$/, '');
    if (/\.(svg|webp|png)$/.test(full)) return `${mark}(${relative(here, full.replace(/^docs\//, ''))})`;
    const page = [full, `${full}/README.md`].find((path) => sources.has(path));
    if (page !== undefined) return `${mark}(${relative(here, placeInSite(page) as string)}${anchor})`;
    return files === undefined ? mark.replace(/^\[([\s\S]*)\]$/, '$1') : `${mark}(${files}/${full})`;
  });
  return `${frontmatter(source, files)}${text}`;
}

/** A link or a picture: its text in brackets, its target, its anchor. */
const LINK = /(!?\[(?:[^\][]|\[[^\]]*\])*\])\(([^)#\s]*)(#[^)\s]*)?\)/g;

const relative = (from: string, to: string): string => {
  const path = posix.relative(dirname(from), to);
  return path.startsWith('.') ? path : `./${path}`;
};

/** The comments that mark generated parts and quoted findings. The site shows HTML as text. */
const withoutMarks = (text: string): string =>
  text.replaceAll(/^<!-- .*? -->\n/gm, '').replaceAll(/<!-- [\s\S]*? -->/g, '');

/** Pages of raw tables and notes by date, which would hide guides in the results of a search. */
const NOT_SEARCHED = /^docs\/(research|lab-notes)\//;

/** The head of a page: the address to edit it, if it is known, and whether the search leaves the page out. */
const frontmatter = (source: string, files: string | undefined): string => {
  const edit = files === undefined ? 'editLink: false' : `edit: ${files}/${source}`;
  return `---\n${edit}\n${NOT_SEARCHED.test(source) ? 'search: false\n' : ''}---\n\n`;
};

/** A page for each import path. */
function subpaths(text: string, head: string): SitePage[] {
  return text
    .split(/^(?=## `drmas)/m)
    .slice(1)
    .map((section) => {
      const name = /^## `([^`]+)`/.exec(section)?.[1] ?? '';
      const plain = section.replace(/^## /, '# ').replaceAll(/^### /gm, '## ');
      return { path: `reference/api/${name.replaceAll('/', '-')}.md`, title: name, text: `${head}${plain}`, plain };
    });
}

/** The groups and links of docs/README.md, for the menu. */
export function groupsOf(index: string): SiteData['groups'] {
  return index
    .split(/^\*\*(?=.+\*\*$)/m)
    .slice(1)
    .map((group) => {
      const [heading = '', ...lines] = group.split('\n');
      const links = [...lines.join('\n').matchAll(LINK)].flatMap(([, mark = '', target = '']) => {
        const place = placeInSite(posix.normalize(posix.join('docs', target)));
        if (place === undefined) return [];
        const text = mark.slice(1, -1).replaceAll(/\s+/g, ' ');
        return [{ text: text.charAt(0).toUpperCase() + text.slice(1), link: `/${place.replace(/(index)?\.md$/, '')}` }];
      });
      return { text: heading.replace(/\*\*$/, ''), items: links };
    });
}

/**
 * Writes the weights after the warm start of the page that trains, seed 1, into the folder of the page. The page loads
 * them, so that reinforcement begins at once; without the file it trains the same weights itself.
 */
export async function writeWarmStart(folder: string): Promise<void> {
  const [{ train }, { default: repair }, { repairOverrides }] = await Promise.all([
    import('../src/runs/run/api.js'),
    import('../recipes/repair/recipe.js'),
    import('../apps/site/src/run/repair-recipe.js'),
  ]);
  const run = mkdtempSync(join(tmpdir(), 'drmas-warm-start-'));
  const before = process.env.DRMAS_KERNELS;
  process.env.DRMAS_KERNELS = 'wasm'; // the kernels of a tab, so the bits of a tab
  try {
    const set = [...repairOverrides({ estimator: 'drmas', seed: 1, set: [] }), 'training.steps=0'];
    await train(repair, { run: join(run, 'run'), set, threads: 1 });
    const model = join(run, 'run/checkpoints/step-000000/coder');
    mkdirSync(join(folder, 'warm-start'));
    for (const name of ['config.json', 'drmas_tokenizer.json', 'model.safetensors'])
      copyFileSync(join(model, name), join(folder, 'warm-start', name));
  } finally {
    if (before === undefined) delete process.env.DRMAS_KERNELS;
    else process.env.DRMAS_KERNELS = before;
    rmSync(run, { recursive: true, force: true });
  }
}
