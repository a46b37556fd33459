/** The documentation site in headless Chromium. Skipped without Chromium, and if `npm run site` has not built it. */
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrowserPage, chromium } from '../support/chromium.js';

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const built = at('dist/site');
const axe = at('site/docs/node_modules/axe-core/axe.min.js');
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
/** The home page may fetch this many bytes, compressed, before the demo is asked for. */
const MOST_BYTES = 300_000;

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

const isThere = chromium !== undefined && existsSync(built) && existsSync(axe);

describe.skipIf(!isThere)('the documentation site (skipped without Chromium or `npm run site`)', () => {
  let server: Server;
  let page: BrowserPage;
  let sent = 0;
  const paths: string[] = [];
  const go = async (path: string) => {
    const { port } = server.address() as AddressInfo;
    await page.go('about:blank');
    await page.go(`http://127.0.0.1:${port}/${path}`);
    await page.until("document.querySelector('main h1')");
  };

  beforeAll(async () => {
    server = createServer(async ({ url = '' }, response) => {
      const path = normalize(new URL(url, 'http://localhost').pathname);
      const content = await readFile(join(built, path)).catch(() => undefined);
      paths.push(path);
      sent += content === undefined ? 0 : gzipSync(content).length;
      response.writeHead(content === undefined ? 404 : 200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' });
      response.end(content);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    page = await BrowserPage.open('about:blank', { width: 390, height: 844 });
  }, 60_000);
  afterAll(async () => {
    await page?.close();
    server?.closeAllConnections();
    server?.close();
  });

  it('fetches little before the demo is asked for, and the demo when its button is pressed', async () => {
    await go('index.html');
    await page.until("document.querySelector('button.demo')");
    await page.until("document.querySelector('main img').complete");
    expect(sent).toBeLessThan(MOST_BYTES);
    expect(paths.filter((path) => path.startsWith('/demo/'))).toEqual([]);
    await page.evaluate("document.querySelector('button.demo').focus()");
    await page.click('button.demo');
    await page.until("document.querySelector('iframe.demo')?.contentDocument?.querySelector('.run')");
    expect(paths).toContain('/demo/index.html');
  }, 60_000);

  // VitePress gives headings of its menu the role of a button, with a heading inside: axe's rule nested-interactive.
  it.each(['index.html', 'getting-started.html', 'concepts.html', 'questions.html'])(
    'has no serious barrier on %s, and does not scroll sideways on a phone',
    async (path) => {
      await go(path);
      await page.evaluate(readFileSync(axe, 'utf8'));
      const findings = (await page.evaluate(
        "axe.run(document, { resultTypes: ['violations'], rules: { 'nested-interactive': { enabled: false } } }).then(({ violations }) => violations)",
      )) as Finding[];
      const serious = findings.filter(({ impact }) => ['serious', 'critical'].includes(impact));
      expect(serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(page.problems).toEqual([]);
    },
    60_000,
  );

  it('lists every page for programs, each as text beside its page', () => {
    const list = readFileSync(join(built, 'llms.txt'), 'utf8');
    const paths = [...list.matchAll(/\]\(([^)]+)\)/g)].map(([, path = '']) => path);
    expect(paths).toContain('getting-started.md');
    expect(paths.filter((path) => !existsSync(join(built, path)))).toEqual([]);
    expect(readFileSync(join(built, 'getting-started.md'), 'utf8')).toMatch(/^# Getting started/);
  });
});
