// @module-tag verify
/** The page that trains a team in the tab, in headless Chromium. Skipped without Chromium. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltSite, serveBuiltSite } from '../support/built-site.js';
import { BrowserPage, chromium } from '../support/chromium.js';
import { stopwatch, takesTime, timeForMishaps } from '../support/time-and-chance.js';

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
  }, 300_000);
  afterAll(async () => {
    await page?.close();
    await site?.close();
  });

  it('trains until Dr. MAS is ahead, shows an episode of each run, and stops while it is paused', {
    timeout: 500_000,
  }, async () => {
    await open(QUICK);
    await page.until("/Dr. MAS is ahead by/.test(document.querySelector('[data-verdict]').textContent)", 400);
    await page.click('button', 'pause');
    await page.until("document.querySelectorAll('.run .turn').length >= 4");
    await page.says(/fixer\s+read “[a-z]+: removed in version 2”/);
    await page.says(/Dr\. MAS[\s\S]*reinforcement, \d+ steps done[\s\S]*GRPO[\s\S]*reinforcement, \d+ steps done/);
    // As high as the style wants them: without uPlot's style they lie over the rest of the page.
    const heights = "[...document.querySelectorAll('.chart canvas')].map((each) => each.clientHeight)";
    expect(await page.evaluate(heights)).toEqual([170, 170, 170]);
    await takesTime(1000); // what was asked of the engine before is still computed
    const paused = await verdict();
    await timeForMishaps(2000);
    expect(await verdict()).toBe(paused);
    await page.click('button', 'continue');
    await page.until(`document.querySelector('[data-verdict]').textContent !== ${JSON.stringify(paused)}`, 60);
    expect(page.problems).toEqual([]);
  });

  it('shows two teams learning soon after one press, on a phone and by the keyboard alone', {
    timeout: 600_000,
  }, async () => {
    const phone = await BrowserPage.open('about:blank', { width: 390, height: 844 });
    try {
      await phone.go(site.address([]));
      await phone.until("document.querySelector('button.main')");
      await phone.says(/Nobody tells it the new names/);
      const fits = 'document.documentElement.scrollWidth <= document.documentElement.clientWidth';
      expect(await phone.evaluate(fits)).toBe(true);
      const controls = "[...document.querySelectorAll('button, input, summary')]";
      expect(await phone.evaluate(`${controls}.every((each) => each.tabIndex >= 0)`)).toBe(true);
      await phone.evaluate("document.querySelector('button.main').focus()");
      const seconds = stopwatch();
      await phone.press('Enter');
      await phone.until("document.querySelectorAll('.run .turn').length >= 4", 200);
      console.info(`each team shows an episode ${seconds().toFixed(1)} s after the press`);
      expect(await phone.evaluate('/warm start: step/.test(document.body.innerText)')).toBe(false);
      await phone.until("Number(document.querySelector('[data-found]').textContent) >= 6", 400);
      console.info(`Dr. MAS has found 6 names after ${seconds().toFixed(1)} s`);
      expect(await phone.evaluate(fits)).toBe(true);
      expect(phone.problems).toEqual([]);
    } finally {
      await phone.close();
    }
  });

  it('trains with the dose and the names of the visitor', async () => {
    await page.go('about:blank');
    await page.go(site.address(['training.steps=4']));
    await page.type('input[type=range]', '60');
    await page.says(/needed in 60 % of the episodes/);
    await page.says(/--set tasks\.train\.drift=0\.6/);
    await page.click('.rule summary');
    await page.type('.rule input', 'sort');
    await page.says(/“sort” is a word of the team already/);
    expect(await page.evaluate("document.querySelector('.rule button').disabled")).toBe(true);
    await page.type('.rule input', 'duplicate');
    await page.click('.rule button', 'train with these names');
    await page.until('/names=duplicate/.test(location.hash)');
    const done =
      "[...document.querySelectorAll('.run .state')].filter((each) => /^done after 4/.test(each.textContent))";
    await page.until(`${done}.length === 2`, 200);
    expect(page.problems).toEqual([]);
  }, 300_000);

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

  it('is there in a browser whose language Intl refuses', async () => {
    const odd = await BrowserPage.open('about:blank', { flags: ['--accept-lang=en-US@posix'] });
    try {
      expect(await odd.evaluate('navigator.language')).toBe('en-US@posix');
      await odd.go(site.address([]));
      await odd.until("document.querySelector('button.main')");
      expect(odd.problems).toEqual([]);
    } finally {
      await odd.close();
    }
  }, 60_000);

  it('names the fault of a link', async () => {
    await open(['training.stepz=1']);
    await page.says(/training\.stepz/);
    expect(page.problems).toEqual([]);
  }, 30_000);
});
