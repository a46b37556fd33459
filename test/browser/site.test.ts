/** The page that trains a team in the tab, in headless Chromium. Skipped without Chromium. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltSite, serveBuiltSite } from '../support/built-site.js';
import { BrowserPage, chromium } from '../support/chromium.js';

/** Settings with which a difference shows after some twenty steps: more drift, and a faster fixer. */
const QUICK = [
  'warmStart.steps=200',
  'tasks.train.drift=0.4',
  'tasks.test.drift=0.4',
  'policies.fixer.optimizer.learningRate=0.0015',
  'training.steps=200',
];

describe.skipIf(chromium === undefined)('the page that trains (skipped where no Chromium is installed)', () => {
  let site: BuiltSite;
  let page: BrowserPage;
  const open = async (set: readonly string[]) => {
    await page.go('about:blank');
    await page.go(site.address(set));
    await page.click('button.main', 'train');
  };
  const verdict = () => page.evaluate("document.querySelector('[data-verdict]').textContent");

  beforeAll(async () => {
    site = await serveBuiltSite();
    page = await BrowserPage.open('about:blank');
  }, 60_000);
  afterAll(async () => {
    await page?.close();
    await site?.close();
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
    await page.click('button', 'continue');
    await page.until(`document.querySelector('[data-verdict]').textContent !== ${JSON.stringify(paused)}`, 60);
    expect(page.problems).toEqual([]);
  }, 500_000);

  it('takes the seed that is typed, and the link that it copies opens the same', async () => {
    const field = "document.querySelector('input[type=number]')";
    await page.go('about:blank');
    await page.go(site.address(QUICK));
    await page.until(field);
    await page.evaluate(`${field}.value = '7'; ${field}.dispatchEvent(new Event('input', { bubbles: true }))`);
    await page.says(/--seed 7 --set warmStart\.steps=200/);
    await page.evaluate('navigator.clipboard.writeText = async (text) => { window.copied = text; }');
    await page.click('button', 'copy the link');
    await page.until('window.copied');
    const link = String(await page.evaluate('window.copied'));
    await page.go('about:blank');
    await page.go(link);
    await page.until(`${field}?.value === '7'`);
    await page.says(/--seed 7 --set warmStart\.steps=200/);
    expect(page.problems).toEqual([]);
  }, 60_000);

  it('names the fault of a link', async () => {
    await open(['training.stepz=1']);
    await page.says(/training\.stepz/);
    expect(page.problems).toEqual([]);
  }, 30_000);
});
