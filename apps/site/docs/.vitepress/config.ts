/** The documentation site. `npm run site` writes its pages and the file `site.json` first (scripts/site.ts). */
import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitepress';
import { slugOf } from '../../../../scripts/docs/links.js';
import type { SiteData } from '../../../../scripts/site-pages.js';
import { search } from './search.js';

/** The logo as an address, so that it needs no file beside the pages. */
const logo = `data:image/svg+xml,${encodeURIComponent(
  readFileSync(new URL('../../../../docs/images/logo.svg', import.meta.url), 'utf8'),
)}`;

const data = JSON.parse(readFileSync(new URL('../pages/site.json', import.meta.url), 'utf8')) as SiteData;

export default defineConfig({
  title: 'drmas',
  description: 'Train teams of LLM agents with reinforcement learning, in TypeScript.',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: logo }]],
  srcDir: 'pages',
  outDir: process.env.DRMAS_SITE_OUT ?? '../../../dist/site',
  base: process.env.DRMAS_SITE_BASE ?? '/',
  router: { prefetchLinks: false }, // the home page alone would fetch 83 kB of other pages
  markdown: {
    html: false, // `<run>` in a sentence is no element
    anchor: { slugify: slugOf }, // links between pages are written for GitHub
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    logo,
    search: { provider: 'local', options: { miniSearch: search } },
    outline: [2, 3],
    nav: [
      { text: 'Install', link: '/getting-started#install' },
      { text: 'Guides', link: '/pages' },
      { text: 'Findings', link: '/findings' },
      { text: data.version, link: '/project/CHANGELOG' },
    ],
    sidebar: data.groups.map(({ text, items }) => ({
      text,
      items: [...items],
      collapsed: text.startsWith('Research'),
    })),
    ...(data.files === undefined
      ? {}
      : // The browser gets the function as text, so it can use nothing but its argument.
        { editLink: { pattern: ({ frontmatter }) => frontmatter.edit, text: 'Edit this page' } }),
  },
});
