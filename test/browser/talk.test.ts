// @module-tag verify
/** Talking to an agent in headless Chromium, and the tokens of a trained run. Skipped without Chromium. */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWatching, type WatchServer } from '../../src/dashboard/watch/watch-server.js';
import { BrowserPage, chromium } from '../support/chromium.js';
import { temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();

describe.skipIf(chromium === undefined)('talking in a browser (skipped where no Chromium is installed)', () => {
  let server: WatchServer;
  let page: BrowserPage;
  beforeAll(async () => {
    // Several updates a step with a tight clip: ratios differ from 1, and some tokens are clipped.
    const updates = ['solver', 'verifier'].flatMap((policy) => [
      `policies.${policy}.epochs=3`,
      `policies.${policy}.optimizer.learningRate=0.05`,
    ]);
    const run = await trainTiny(root, tinyRecipe({}, [...updates, 'loss.clip=0.05', 'training.groupSize=8']));
    await rename(run.path, join(root, 'tiny'));
    server = await startWatching({ folder: join(root, 'tiny'), port: 0 });
    page = await BrowserPage.open(server.url);
  }, 60_000);
  afterAll(async () => {
    await page?.close();
    await server?.close();
  });

  it('asks an agent, with both answers side by side, and frees the memory', async () => {
    await page.click('nav.tabs a', 'talk');
    await page.says(/The first question loads the agent/);
    await page.type('select', 'verifier');
    await page.click('input[type=checkbox]');
    await page.type('input[aria-label="most tokens"]', '2');
    const hostile = `<img src=x onerror="document.title='owned'">1+2`;
    await page.type('textarea', '12+7');
    await page.click('button.main', 'ask');
    await page.until("document.querySelectorAll('.side').length === 2");
    await page.says(/verifier, step 4, greedy[\s\S]*trained \(step 4\)[\s\S]*before training \(warm start\)/i);
    await page.until(
      "[...document.querySelectorAll('.side p')].filter((p) => /^[12] tokens?,/.test(p.textContent)).length === 2",
    );
    await page.says(/In memory: verifier of tiny at step 4/);
    await page.type('textarea', hostile);
    await page.click('button.main', 'ask');
    await page.until(
      "document.querySelectorAll('.exchange').length === 2 && document.querySelector('.exchange header pre').textContent.includes('onerror')",
    );
    await page.until("document.querySelector('button.main')");
    await page.click('button', 'free it now');
    await page.says(/The first question loads the agent/);
    expect(await page.evaluate("document.title + document.querySelectorAll('main img').length")).toBe('tiny - drmas0');
  }, 60_000);

  it('asks an agent the prompt of an earlier turn again', async () => {
    await page.click('nav.tabs a', 'episodes');
    await page.click('.turn a', 'ask it again');
    await page.until("document.querySelectorAll('.asking > .message').length >= 2");
    const prompt = await page.evaluate("[...document.querySelectorAll('.asking > .message pre')].at(-1).textContent");
    await page.click('button.main', 'ask');
    await page.until("document.querySelectorAll('.side p').length === 2");
    expect(await page.evaluate("document.querySelector('.exchange header pre').textContent")).toBe(prompt);
    expect(page.problems).toEqual([]);
  }, 60_000);

  it('shows the effect of the update on every token, and the totals in tables', async () => {
    await page.click('nav.tabs a', 'episodes');
    await page.until("document.querySelectorAll('.turn button').length > 4");
    await page.evaluate("document.querySelectorAll('.turn .more button').forEach((button) => button.click())");
    await page.until("document.querySelectorAll('.tokens').length > 4");
    await page.evaluate(
      "[...document.querySelectorAll('.shades button')].filter((b) => b.textContent === 'ratio').forEach((b) => b.click())",
    );
    await page.until("document.querySelector('.token.above, .token.below')");
    await page.says(/ratio 0\.\d+ to 1\.\d+, \d+ of \d+ clipped/);
    await page.click('.token.clipped');
    await page.says(/log-prob −?-?\d[\d.]* \(p [\d.]+\), ratio [\d.]+, clipped, advantage/);
    await page.click('nav.tabs a', 'tables');
    await page.says(/Costs[\s\S]*all steps\s+[\d,]+\s+[\d,]+\s+[\d,]+\s+\d+\s+\d/);
    expect(page.problems).toEqual([]);
  }, 60_000);
});
