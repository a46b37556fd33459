// @module-tag verify
/** The dashboard in headless Chromium, on a run that grows. Skipped, and reported as skipped, without Chromium. */
import { appendFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Step } from '@drmas/engine/events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWatching, type WatchServer } from '../../src/dashboard/watch/watch-server.js';
import { writeAblation } from '../../src/method/store/ablation-record.js';
import { evaluation, stamped, started, step } from '../fixtures/run-events.js';
import { BrowserPage, chromium } from '../support/chromium.js';
import { hostile, madeUpEpisode, prepareRun, recordRun } from '../support/recorded-run.js';

describe.skipIf(chromium === undefined)('the dashboard in a browser (skipped where no Chromium is installed)', () => {
  let root: string;
  let server: WatchServer;
  let page: BrowserPage;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-watch-browser-'));
    await mkdir(join(root, 'runs'));
    for (const [i, name] of ['first', 'second'].entries()) {
      const run = await recordRun(join(root, 'runs', name), { text: hostile, seed: i + 1 });
      const many = Array.from({ length: i === 0 ? 3000 : 2 }, (_, n) =>
        madeUpEpisode(`task ${n >> 1}`, n & 1, n & 1, `${hostile} ${n}`),
      );
      await run.writeStepEpisodes(
        2,
        many,
        many.map((_, n) => [n % 2 === 0 ? -0.5 : 0.5, 0.25]),
      );
      if (i === 1) {
        const even = ['task 8', 'task 9'].flatMap((task) => [0, 1].map((n) => madeUpEpisode(task, n, 1, 'same')));
        await run.writeStepEpisodes(
          3,
          even,
          even.map(() => [0, 0]),
        );
        run.emit(step(3, { groups: { allRight: 2, allWrong: 0, mixed: 0, penaltyOnly: 0 } }));
      }
      await run.close();
    }
    const sweep = join(root, 'runs', 'sweep');
    await mkdir(sweep);
    for (const [i, type] of ['grpo', 'drmas'].entries())
      for (const seed of [1, 2]) {
        const run = await recordRun(join(sweep, `${type}-${seed}`), { seed, overrides: [`advantage.type=${type}`] });
        run.emit(evaluation(2, 0.5 + 0.1 * i + 0.01 * seed));
        run.emit({ type: 'run.finished', reason: 'completed', steps: 2, seconds: 1 });
        await run.close();
      }
    const vary = [{ key: 'advantage.type', values: ['grpo', 'drmas'] }];
    await writeAblation(sweep, {
      version: 1,
      recipe: { source: 'math', codeHash: 'abc', overrides: [] },
      vary,
      seeds: 2,
      baseline: 'grpo',
    });
    server = await startWatching({ folder: join(root, 'runs'), port: 0 });
    page = await BrowserPage.open(server.url);
  }, 60_000);
  afterAll(async () => {
    await page?.close();
    await server?.close();
    await rm(root, { recursive: true, force: true });
  });

  it('lists the runs, finds some by words, and compares two', async () => {
    await page.until("document.querySelectorAll('table.runs input[type=checkbox]').length === 6");
    await page.type('input[type=search]', 'second completed');
    await page.until("document.querySelectorAll('table.runs input[type=checkbox]').length === 1");
    await page.type('input[type=search]', '');
    for (const name of ['first', 'second']) await page.click('input[type=checkbox]', name);
    await page.click('button', 'compare 2 runs');
    await page.until("document.querySelectorAll('.chart canvas').length > 5");
    await page.says(/Different settings[\s\S]*seed\s+1\s+2/);
    await page.click('header a', 'runs');
  }, 60_000);

  it('shows an ablation as means of its variants and differences over pairs', async () => {
    await page.click('table.runs a', 'sweep');
    await page.until("document.querySelectorAll('.chart canvas').length > 5");
    await page.says(/drmas\s+2 of 2\s+50\.0 %\s+61\.5 % ± 0\.7\s+\+10\.0 \[\+10\.0, \+10\.0\], 2 pairs/);
    await page.click('header a', 'runs');
  }, 60_000);

  it('shows a run, and its new events while the page is open', async () => {
    await page.click('table.runs a', 'first');
    await page.until("document.querySelector('.tile b')");
    await page.until("document.body.innerText.includes('2/') || document.body.innerText.includes('steps')");
    const before = await page.evaluate("document.querySelectorAll('.chart canvas').length");
    expect(before).toBeGreaterThan(6);
    const events = [3, 4, 5].map((n) => {
      const { agents, ...rest } = step(n, { reward: { mean: 0.125, std: 0 }, metrics: { rounds: n } });
      const solver = { ...agents.solver, parts: { calls: -0.5, form: 0.25 } };
      return JSON.stringify(stamped({ ...rest, agents: { ...agents, solver } } as Step));
    });
    await appendFile(join(root, 'runs', 'first', 'events.jsonl'), `${events.join('\n')}\n`);
    await page.until("document.querySelector('[data-chart=\"training reward\"] [data-value]').textContent === '0.13'");
    const named = (chart: string) =>
      page.evaluate(`document.querySelector('[data-chart="${chart}"] .legend')?.textContent`);
    expect(await named('parts of the reward of solver')).toBe('calls-0.50form0.25');
    expect(await named('parts of the reward of verifier')).toBeUndefined();
    expect(await named('training metrics')).toBe('rounds5.00');
    await page.click('.sign', 'step 2');
    await page.until("document.querySelector('.said').textContent.includes('gradient norm 12.0')");
    await page.click('nav a', 'tables');
    await page.until("document.body.innerText.includes('Agents over all steps')");
  }, 60_000);

  it('browses thousands of episodes, finds some, and shows siblings and tokens', async () => {
    await page.click('nav.tabs a', 'episodes');
    await page.until("document.body.innerText.includes('1,500 of 1,500 groups')");
    expect(await page.evaluate("document.querySelectorAll('.virtual .row').length")).toBeLessThan(60);
    await page.evaluate("document.querySelector('.virtual').scrollTop = 44 * 1200");
    await page.click('.virtual .row', 'task 1205');
    await page.until("document.querySelector('.question b')?.textContent === 'task 1205'");
    expect(await page.evaluate("document.querySelectorAll('.episode .turn.good').length")).toBe(3);
    expect(await page.evaluate("document.querySelectorAll('.episode .turn.bad').length")).toBe(1);
    await page.type('input[type=search]', ' 2468');
    await page.until("document.body.innerText.includes('1 of 1,500 groups')");
    await page.until("document.querySelector('.question b')?.textContent === 'task 1234'");
    await page.click('.turn button', '3 tokens');
    await page.until("document.querySelectorAll('.token').length === 3");
    await page.type('input[type=search]', 'in no text at all');
    await page.until("document.body.innerText.includes('No group here is like that')");
    await page.type('input[type=search]', '');
  }, 60_000);

  it('opens the episodes where rewards differ, and names groups by their question', async () => {
    await page.click('header a', 'runs');
    await page.click('table.runs a', 'second');
    await page.click('nav.tabs a', 'episodes');
    await page.until("document.querySelector('.controls select')?.value === 'step-000002'");
    await page.until("document.querySelector('.virtual .row .task')?.textContent === 'what is task 0?'");
    await page.until("document.querySelectorAll('.siblings .turn.good').length > 0");
    await page.click('header a', 'runs');
    await page.click('table.runs a', 'first');
  }, 60_000);

  it('never runs the text of a model or a task', async () => {
    for (const tab of ['overview', 'agents', 'episodes', 'talk', 'tables', 'recipe']) {
      await page.click('nav.tabs a', tab);
      await page.until(`document.querySelector('nav.tabs [aria-current]').textContent === '${tab}'`);
    }
    expect(await page.evaluate('document.title')).toBe('first - drmas');
    expect(await page.evaluate("document.querySelectorAll('main img, main script').length")).toBe(0);
    expect(page.problems).toEqual([]);
  }, 60_000);

  it('says that a run is being prepared, and what is being done, until it starts', async () => {
    const awaiting = await startWatching({ folder: undefined, port: 0 });
    try {
      await page.go('about:blank');
      await page.go(awaiting.url);
      await page.says(/drmas is preparing the run: it reads the recipe/);
      const path = join(root, 'prepared');
      const run = await prepareRun(path);
      run.emit({ type: 'preparing', message: 'compiling the kernels: 1 of 3 files' });
      awaiting.show(path);
      await page.says(/prepared[\s\S]*drmas is preparing the run: compiling the kernels: 1 of 3 files/);
      run.emit(started);
      await page.until("!document.body.innerText.includes('drmas is preparing')");
      await run.close();
      expect(page.problems).toEqual([]);
    } finally {
      await awaiting.close();
    }
  }, 60_000);
});
