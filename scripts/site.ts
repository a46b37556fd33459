/**
 * `npm run site`: builds the documentation site in dist/site from README.md and docs/, with the page that trains as
 * its demo. VitePress has a lockfile of its own in apps/site/docs, so that `npm ci` of the project stays small.
 * DRMAS_SITE_BASE is the path of the site at its host, DRMAS_SITE_FILES the address of the repository's files: links
 * to sources, and the link to edit a page, need it. DRMAS_SITE_OUT is another folder than dist/site.
 */
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'vite';
import { readPage, root } from './docs/pages.js';
import { groupsOf, type SiteData, sitePages, writeWarmStart } from './site-pages.js';
import { runProgram } from './support/run-program.js';
import { installLocked, runOrExit } from './support/separate-packages.js';

const SITE = join(root, 'apps/site/docs');
const PAGES = join(SITE, 'pages');
const OUT = resolve(process.env.DRMAS_SITE_OUT ?? join(root, 'dist/site'));

async function main(): Promise<number> {
  const files = process.env.DRMAS_SITE_FILES;
  const pages = sitePages(files);
  rmSync(PAGES, { recursive: true, force: true });
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  for (const { path, text } of pages) write(join(PAGES, path), text);
  for (const folder of ['images', 'findings/figures'])
    cpSync(join(root, 'docs', folder), join(PAGES, folder), { recursive: true });
  const { version } = JSON.parse(readPage('package.json')) as { readonly version: string };
  const data: SiteData = {
    version,
    ...(files === undefined ? {} : { files }),
    groups: groupsOf(readPage('docs/README.md')),
  };
  write(join(PAGES, 'site.json'), JSON.stringify(data));

  installLocked(SITE);
  runOrExit(process.execPath, [join(SITE, 'node_modules/vitepress/bin/vitepress.js'), 'build', SITE], SITE);
  await build({ configFile: join(root, 'apps/site/vite.config.ts'), build: { outDir: join(OUT, 'demo') } });
  await writeWarmStart(join(OUT, 'demo'));
  for (const { path, plain } of pages) write(join(OUT, path), plain); // every page as text, for programs that read
  write(join(OUT, 'llms.txt'), pages.map(({ path, title }) => `- [${title}](${path})`).join('\n'));
  console.log(`${OUT} has ${pages.length} pages and ${readdirSync(join(OUT, 'demo')).length} files of the demo`);
  return 0;
}

await runProgram('npm run site\n', main);
