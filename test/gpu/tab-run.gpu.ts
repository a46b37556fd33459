/**
 * The page that trains in a tab, on the browser's GPU: `npm run verify -- gpu-run`, minutes on a driver in software.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BuiltSite, serveBuiltSite } from '../support/built-site.js';
import { BrowserPage, chromium, SOFTWARE_GPU } from '../support/chromium.js';

let site: BuiltSite;
let page: BrowserPage | undefined;
beforeAll(async () => {
  site = await serveBuiltSite();
});
afterAll(async () => {
  await page?.close();
  await site.close();
});

const SMALL = [
  ...['warmStart.steps=1', 'warmStart.batch=4', 'training.steps=2'],
  ...['training.tasksPerStep=1', 'training.groupSize=3'],
];

it.skipIf(chromium === undefined)('trains the team repair in a tab of Chromium, with both estimators', async () => {
  page = await BrowserPage.open(site.address([...SMALL, 'backend.device=gpu']), { flags: SOFTWARE_GPU });
  await page.click('button.main', 'train');
  await page.says(/on the GPU[\s\S]*kernels in WGSL/);
  const ended = /Dr\. MAS[\s\S]*done after 2 steps[\s\S]*GRPO[\s\S]*done after 2 steps/;
  await page.until(`${ended}.test(document.body.innerText)`, 900);
  expect(page.problems).toEqual([]);
});
