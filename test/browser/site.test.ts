/** The page that trains a team in the tab, in headless Chromium; skipped where there is none. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashOf } from '../../site/src/page/address.js';
import { BrowserPage, chromium } from '../support/chromium.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.wasm': 'application/wasm',
};

/** Settings with which a difference shows after some twenty steps: more drift, and a faster fixer. */
const QUICK = [
  'warmStart.steps=200',
  'tasks.train.drift=0.4',
  'tasks.test.drift=0.4',
  'policies.fixer.optimizer.learningRate=0.0015',
  'training.steps=200',
];

describe.skipIf(chromium === undefined)('the page that trains (skipped where no Chromium is installed)', () => {
  let folder: string;
  let server: Server;
  let page: BrowserPage;
  const address = (set: readonly string[]) => {
    const hash = hashOf({ seed: 1, set });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/deep/index.html${hash}`;
  };
  const open = async (set: readonly string[]) => {
    await page.go('about:blank');
    await page.go(address(set));
    await page.click('button.main', 'train');
  };
  const verdict = () => page.evaluate("document.querySelector('[data-verdict]').textContent");

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'drmas-site-'));
    const { build } = await import('vite');
    const configFile = fileURLToPath(new URL('../../site/vite.config.ts', import.meta.url));
    await build({ configFile, build: { outDir: join(folder, 'deep') } });
    // Files alone, as any host of static pages has them, and not at its root.
    server = createServer(async ({ url = '' }, response) => {
      const path = join(folder, new URL(url, 'http://localhost').pathname);
      const content = await readFile(path).catch(() => undefined);
      response.writeHead(content === undefined ? 404 : 200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' });
      response.end(content);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    page = await BrowserPage.open('about:blank');
  }, 60_000);
  afterAll(async () => {
    await page?.close();
    server?.closeAllConnections();
    server?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  it('trains until Dr. MAS is ahead, shows an episode of each run, and stops while it is paused', async () => {
    await open(QUICK);
    await page.until("/Dr. MAS is ahead by/.test(document.querySelector('[data-verdict]').textContent)", 400);
    await page.click('button', 'pause');
    await page.until("document.querySelectorAll('.run .turn').length >= 4");
    await page.says(/fixer\s+read “[a-z]+: removed in version 2”/);
    await page.says(/Dr\. MAS[\s\S]*reinforcement, \d+ steps done[\s\S]*GRPO[\s\S]*reinforcement, \d+ steps done/);
    // As high as the style wants them: without uPlot's style they lie over the rest of the page.
    const heights = "[...document.querySelectorAll('.chart canvas')].map((each) => each.clientHeight)";
    expect(await page.evaluate(heights)).toEqual([170, 170, 170]);
    await new Promise((resolve) => setTimeout(resolve, 1000)); // what was asked of the engine before is still computed
    const paused = await verdict();
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(await verdict()).toBe(paused);
    await page.click('button', 'go on');
    await page.until(`document.querySelector('[data-verdict]').textContent !== ${JSON.stringify(paused)}`, 60);
    expect(page.problems).toEqual([]);
  }, 500_000);

  it('says what is wrong with a link', async () => {
    await open(['training.stepz=1']);
    await page.says(/training\.stepz/);
    expect(page.problems).toEqual([]);
  }, 30_000);
});
