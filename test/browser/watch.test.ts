/** The dashboard in headless Chromium, on a run that grows; skipped, visibly, where there is none. */
import { appendFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWatching, type WatchServer } from '../../src/watch/watch-server.js';
import { stamped, step } from '../fixtures/run-events.js';
import { BrowserPage, chromium } from '../support/chromium.js';
import { hostile, recordRun } from '../support/recorded-run.js';

describe.skipIf(chromium === undefined)('the dashboard in a browser (skipped where no Chromium is installed)', () => {
  let root: string;
  let server: WatchServer;
  let page: BrowserPage;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-watch-browser-'));
    await mkdir(join(root, 'runs'));
    for (const [i, name] of ['first', 'second'].entries())
      await (await recordRun(join(root, 'runs', name), { text: hostile, seed: i + 1 })).close();
    server = await startWatching({ folder: join(root, 'runs'), port: 0 });
    page = await BrowserPage.open(server.url);
  }, 60_000);
  afterAll(async () => {
    await page?.close();
    await server?.close();
    await rm(root, { recursive: true, force: true });
  });

  it('lists the runs, finds some by words, and compares two', async () => {
    await page.until("document.querySelectorAll('table.runs input[type=checkbox]').length === 2");
    await page.type('input[type=search]', 'second completed');
    await page.until("document.querySelectorAll('table.runs input[type=checkbox]').length === 1");
    await page.type('input[type=search]', '');
    for (const name of ['first', 'second']) await page.click('input[type=checkbox]', name);
    await page.click('button', 'compare 2 runs');
    await page.until("document.querySelectorAll('.chart canvas').length > 5");
    expect(await page.text()).toMatch(/Where their settings differ[\s\S]*seed\s+1\s+2/);
    await page.click('header a', 'runs');
  }, 60_000);

  it('shows a run, and what is added to it while one looks', async () => {
    await page.click('table.runs a', 'first');
    await page.until("document.querySelector('.tile b')");
    await page.until("document.body.innerText.includes('2/') || document.body.innerText.includes('steps')");
    const before = await page.evaluate("document.querySelectorAll('.chart canvas').length");
    expect(before).toBeGreaterThan(6);
    const events = [3, 4, 5].map((n) => JSON.stringify(stamped(step(n, { reward: { mean: 0.125, std: 0 } }))));
    await appendFile(join(root, 'runs', 'first', 'events.jsonl'), `${events.join('\n')}\n`);
    await page.until("document.querySelector('[data-chart=\"training reward\"] [data-value]').textContent === '0.13'");
    await page.click('.sign', 'step 2');
    await page.until("document.querySelector('.said').textContent.includes('gradient norm 12.0')");
    await page.click('nav a', 'tables');
    await page.until("document.body.innerText.includes('Agents over all steps')");
  }, 60_000);

  it('never runs what a model or a task wrote', async () => {
    for (const tab of ['overview', 'agents', 'tables', 'recipe']) {
      await page.click('nav.tabs a', tab);
      await page.until(`document.querySelector('nav.tabs [aria-current]').textContent === '${tab}'`);
    }
    expect(await page.evaluate('document.title')).toBe('first - drmas');
    expect(await page.evaluate("document.querySelectorAll('main img, main script').length")).toBe(0);
    expect(page.problems).toEqual([]);
  }, 60_000);
});
