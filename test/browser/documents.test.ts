// @module-tag verify
/**
 * The documentation site in headless Chromium, built with a base path and the address of a repository. Skipped without
 * Chromium. Without the packages that `npm run site` installs it is skipped too, unless DRMAS_TEST_SITE=1 lets the
 * build install them.
 */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join, normalize, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { search } from '../../apps/site/docs/.vitepress/search.js';
import { sitePages } from '../../scripts/site-pages.js';
import { BrowserPage, chromium } from '../support/chromium.js';
import { queries } from '../support/searches.js';
import { stopwatch, takesTime } from '../support/time-and-chance.js';

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const axe = at('apps/site/docs/node_modules/axe-core/axe.min.js');
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
/** The home page may fetch this many bytes, compressed, before the demo is asked for. */
const MOST_BYTES = 300_000;
/** The site lies below its host's root. */
const BASE = '/deep/';
const FILES = 'https://example.org/files';

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

const isThere = chromium !== undefined && (existsSync(axe) || process.env.DRMAS_TEST_SITE === '1');

describe.skipIf(!isThere)('the documentation site (skipped without Chromium or the packages of `npm run site`)', () => {
  let folder: string;
  /** The built site. */
  let built: string;
  let server: Server;
  let page: BrowserPage;
  let sent = 0;
  const paths: string[] = [];
  const go = async (path: string) => {
    const { port } = server.address() as AddressInfo;
    await page.go('about:blank');
    await page.go(`http://127.0.0.1:${port}${BASE}${path}`);
    await page.until("document.querySelector('main h1')");
  };
  const htmlFiles = () =>
    readdirSync(built, { recursive: true, encoding: 'utf8' }).filter(
      (path) => path.endsWith('.html') && !path.startsWith('demo') && path !== '404.html',
    );

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'drmas-site-'));
    built = join(folder, BASE);
    const env = { ...process.env, DRMAS_SITE_OUT: built, DRMAS_SITE_BASE: BASE, DRMAS_SITE_FILES: FILES };
    await promisify(execFile)(process.execPath, ['--import', 'tsx', at('scripts/site.ts')], { cwd: at('.'), env });
    server = createServer(async ({ url = '' }, response) => {
      const path = normalize(new URL(url, 'http://localhost').pathname);
      const content = await readFile(join(folder, path)).catch(() => undefined);
      paths.push(path);
      sent += content === undefined ? 0 : gzipSync(content).length;
      response.writeHead(content === undefined ? 404 : 200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' });
      response.end(content);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    page = await BrowserPage.open('about:blank', { width: 390, height: 844 });
  }, 600_000);
  afterAll(async () => {
    await page?.close();
    server?.closeAllConnections();
    server?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  it('plays the recorded pair by itself, fetches little, and trains when the button is pressed', async () => {
    const seconds = stopwatch();
    await go('index.html');
    await page.until("document.querySelector('button.demo')");
    const step = "Number(/step (\\d+) of/.exec(document.querySelector('.replay .head').textContent)[1])";
    await page.until(`${step} >= 10`);
    console.info(`ten recorded steps have played ${seconds().toFixed(1)} s after the page was asked for`);
    await page.click('.replay button', 'pause');
    const paused = await page.evaluate(step);
    await takesTime(500);
    expect(await page.evaluate(step)).toBe(paused);
    await page.click('.replay button', 'continue');
    await page.until(`${step} === 150`, 60);
    await page.says(/step 150 of 150[\s\S]*Dr\. MAS 9\d % of the episodes pass[\s\S]*GRPO 7\d % of the episodes pass/);
    expect(sent).toBeLessThan(MOST_BYTES);
    console.info(`the home page fetches ${sent} bytes, compressed, in ${paths.length} requests`);
    expect(paths.filter((path) => path.startsWith(`${BASE}demo/`))).toEqual([]);
    // By the keyboard alone.
    const isReached = "document.activeElement?.matches('button.demo')";
    for (let keys = 0; keys < 60 && (await page.evaluate(isReached)) !== true; keys++) await page.press('Tab');
    expect(await page.evaluate(isReached)).toBe(true);
    await page.press('Enter');
    await page.until("document.querySelector('iframe.demo')?.contentDocument?.querySelector('.run')");
    expect(paths).toContain(`${BASE}demo/index.html`);
  }, 60_000);

  it('has no dead link: each leads to a file of the site, and each anchor to an element', () => {
    const idsOf = (path: string) =>
      new Set([...readFileSync(join(built, path), 'utf8').matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id));
    const ids = new Map(htmlFiles().map((path) => [path, idsOf(path)]));
    let links = 0;
    const dead = [...ids.keys()].flatMap((from) =>
      [...readFileSync(join(built, from), 'utf8').matchAll(/\s(?:href|src)="([^"]*)"/g)].flatMap(([, link = '']) => {
        if (/^(https?|data|mailto):/.test(link)) return [];
        links++;
        const [file = '', anchor = ''] = decodeURI(link.replaceAll('&amp;', '&')).split('#');
        const full = file === '' ? BASE + from : posix.resolve(BASE, posix.dirname(from), file);
        const path = posix.relative(BASE, file.endsWith('/') ? `${full}/index.html` : full);
        const isDead = !existsSync(join(built, path)) || (anchor !== '' && ids.get(path)?.has(anchor) === false);
        return isDead ? [`${from}: ${link}`] : [];
      }),
    );
    expect(dead).toEqual([]);
    expect(links).toBeGreaterThan(3000);
  });

  it('gives each page a link to edit its source', () => {
    for (const path of htmlFiles().filter((each) => each !== 'index.html'))
      expect(readFileSync(join(built, path), 'utf8'), path).toMatch(
        new RegExp(`edit-link-button" href="${FILES}/[\\w./-]+\\.md"`),
      );
  });

  // VitePress gives headings of its menu the role of a button, with a heading inside: axe's rule nested-interactive.
  it.each(['index.html', 'about.html', 'getting-started.html', 'concepts.html', 'questions.html'])(
    'has no serious barrier on %s',
    async (path) => {
      await go(path);
      await page.evaluate(readFileSync(axe, 'utf8'));
      const findings = (await page.evaluate(
        "axe.run(document, { resultTypes: ['violations'], rules: { 'nested-interactive': { enabled: false } } }).then(({ violations }) => violations)",
      )) as Finding[];
      const serious = findings.filter(({ impact }) => ['serious', 'critical'].includes(impact));
      expect(serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
      expect(page.problems).toEqual([]);
    },
    60_000,
  );

  it('answers what people ask in the first three hits of its search', async () => {
    const chunks = join(built, 'assets/chunks');
    const chunk = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot')) ?? '';
    const text = readFileSync(join(chunks, chunk), 'utf8');
    const { default: stored } = (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as {
      default: string;
    };
    const { default: MiniSearch } = (await import(at('apps/site/docs/node_modules/minisearch/dist/es/index.js'))) as {
      default: {
        loadJSON(json: string, options: object): { search(query: string): { readonly id: string }[] };
      };
    };
    const index = MiniSearch.loadJSON(stored, {
      fields: ['title', 'titles', 'text'],
      storeFields: ['title', 'titles'],
      searchOptions: search.searchOptions,
      ...search.options,
    });
    const missed = queries.flatMap(([query, place]) => {
      const first = index.search(query).slice(0, 3);
      return first.some(({ id }) => place.test(id)) ? [] : [`${query}: ${first.map(({ id }) => id).join(', ')}`];
    });
    expect(missed).toEqual([]);
    expect(queries.length).toBeGreaterThanOrEqual(35);
    for (const { id } of index.search('figures tables record')) expect(id).not.toMatch(/\/(research|lab-notes)\//);
  });

  it('lists every page for programs, each as text beside its page', () => {
    const list = readFileSync(join(built, 'llms.txt'), 'utf8');
    const listed = [...list.matchAll(/\]\(([^)]+)\)/g)].map(([, path = '']) => path);
    expect(listed.toSorted()).toEqual(
      htmlFiles()
        .map((path) => path.replace(/html$/, 'md'))
        .toSorted(),
    );
    for (const { path, plain } of sitePages()) expect(readFileSync(join(built, path), 'utf8'), path).toBe(plain);
  });

  it('does not scroll sideways on a phone, on any page', { timeout: 300_000 }, async () => {
    const wide: string[] = [];
    for (const path of htmlFiles()) {
      await go(path);
      if ((await page.evaluate('document.documentElement.scrollWidth <= innerWidth')) !== true) wide.push(path);
    }
    expect(wide).toEqual([]);
  });
});
