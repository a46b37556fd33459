import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { BrowserPage, chromium } from '../../../test/support/chromium.js';
import { drmas, unspaced } from '../../../test/support/command-line.js';
import { hostile, madeUpEpisode, recordRun } from '../../../test/support/recorded-run.js';
import { writeAblation } from '../../method/store/ablation-record.js';
import { EMBEDDED_ID, type EmbeddedReport } from '../../runs/analysis/packed-texts.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-report-'));
});
afterAll(() => rm(root, { recursive: true }));

const dataOf = (page: string) =>
  JSON.parse(new RegExp(`id="${EMBEDDED_ID}">([^<]*)<`).exec(page)?.[1] ?? '') as EmbeddedReport;

describe('the page of one run', () => {
  let page: string;
  beforeAll(async () => {
    const path = join(root, 'hostile');
    await recordRun(path, { text: hostile });
    expect(await drmas(['report', path])).toMatchObject({ code: 0, err: '' });
    page = await readFile(join(path, 'report.html'), 'utf8');
  });

  it('carries the events and the episodes, and a table for who has no JavaScript', () => {
    const { runs, texts } = dataOf(page);
    expect(runs[0]?.listed).toMatchObject({ name: 'hostile', state: 'completed', steps: 2 });
    expect(runs[0]?.events).toHaveLength(9);
    expect([runs[0]?.shown, runs[0]?.kept]).toEqual([12, 12]);
    expect(texts).toContain(`${hostile} 0`);
    expect(page).toMatch(/<th scope="row">hostile<\/th><td>math<\/td><td>drmas<\/td><td>1<\/td><td>completed<\/td>/);
  });

  it('lets no text become markup, and nothing run but its own script', () => {
    const body = page.slice(0, page.indexOf('<script type="module">'));
    expect(body).not.toMatch(/<img|<script>document/);
    expect(page.match(/<script[\s>]/g)).toHaveLength(2);
    expect(page.match(/<\/script>/g)).toHaveLength(2);
    const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1] ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    for (const [element, directive] of [
      [/<script type="module">([\s\S]*?)<\/script>/, 'script-src'],
      [/<style>([\s\S]*?)<\/style>/, 'style-src'],
    ] as const) {
      const content = element.exec(page)?.[1] ?? '';
      expect(policy).toContain(`${directive} 'sha256-${createHash('sha256').update(content).digest('base64')}'`);
    }
  });

  it('asks nobody for anything', () => {
    expect(page.slice(0, page.indexOf('<script'))).not.toMatch(/\b(src|href)="(?!#)|url\(|@import|https?:/);
  });
});

describe('the page of several runs', () => {
  it('has two runs of one name under two names, and replaces an earlier report', async () => {
    const paths = [join(root, 'a', 'run'), join(root, 'b', 'run')];
    for (const [i, path] of paths.entries()) {
      await mkdir(join(path, '..'));
      await recordRun(path, { seed: i + 1 });
    }
    const to = join(root, 'both.html');
    for (let time = 0; time < 2; time++) expect((await drmas(['report', ...paths, '--to', to])).code).toBe(0);
    const { runs } = dataOf(await readFile(to, 'utf8'));
    expect(runs.map(({ listed }) => listed.name)).toEqual(['run', 'run (2)']);
  });

  it('takes the directory of an ablation', async () => {
    const sweep = join(root, 'sweep');
    await mkdir(sweep);
    for (const type of ['grpo', 'drmas']) await recordRun(join(sweep, type), { overrides: [`advantage.type=${type}`] });
    const vary = [{ key: 'advantage.type', values: ['grpo', 'drmas'] }];
    const recipe = { source: 'math', codeHash: 'abc', overrides: [] };
    await writeAblation(sweep, { version: 1, recipe, vary, seeds: 1, baseline: 'grpo' });
    const { code, out } = await drmas(['report', sweep]);
    expect(code).toBe(0);
    expect(unspaced(out)).toMatch(/sweep\/report\.html.*ablate.*sweep['\\]*--seeds6/);
    const { ablations, runs } = dataOf(await readFile(join(sweep, 'report.html'), 'utf8'));
    expect(runs).toHaveLength(2);
    expect(ablations).toMatchObject([{ name: 'sweep', runs: [{ variant: 'drmas' }, { variant: 'grpo' }] }]);
  });

  it('stays below 5 MB for six runs of many steps and episodes', { tags: 'verify' }, async () => {
    const path = join(root, 'large');
    const run = await recordRun(path);
    for (let step = 3; step < 6; step++) {
      const words = (i: number) => `${step} ${i} `.repeat(300);
      await run.writeStepEpisodes(
        step,
        Array.from({ length: 300 }, (_, i) => madeUpEpisode(`t${i >> 2}`, i & 3, i & 1, words(i))),
      );
    }
    await run.close();
    const to = join(root, 'six.html');
    expect((await drmas(['report', ...Array.from({ length: 6 }, () => path), '--to', to])).code).toBe(0);
    expect((await stat(to)).size).toBeLessThan(5e6);
    expect((await stat(to)).size).toBeGreaterThan(2e6);
  });
});

it('refuses what is not a run, and to overwrite what is not a report', async () => {
  expect(await drmas(['report', root])).toMatchObject({ code: 2, err: expect.stringMatching(/is not a run/) });
  const path = join(root, 'kept');
  await recordRun(path);
  const record = join(path, 'recipe.html');
  await rename(join(path, 'recipe.json'), record);
  await writeFile(join(path, 'recipe.json'), await readFile(record));
  const before = await readFile(record, 'utf8');
  expect(await drmas(['report', path, '--to', record])).toMatchObject({
    code: 2,
    err: expect.stringMatching(/is not a report/),
  });
  expect(await readFile(record, 'utf8')).toBe(before);
  expect(await drmas(['report', path, '--to', join(root, 'table.csv')])).toMatchObject({
    code: 2,
    err: expect.stringContaining('--to: expected a file that ends with .html, got'),
  });
  await writeFile(join(path, 'empty.html'), '');
  for (const name of ['empty.html', 'page'])
    expect((await drmas(['report', path, '--to', join(path, name)])).code).toBe(0);
  expect((await drmas(['report', path, '--to', join(root, 'no', 'where.html')])).code).toBe(2);
});

it('keeps the earlier report, and nothing else, if the new one cannot be written', async () => {
  const path = join(root, 'again');
  await recordRun(path);
  expect((await drmas(['report', path])).code).toBe(0);
  const report = join(path, 'report.html');
  const [before, names] = [await readFile(report, 'utf8'), (await readdir(path)).sort()];
  await recordRun(join(root, 'other'));
  const handle = await open(report);
  const full = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, 'writeFile');
  await handle.close();
  full.mockImplementation(async function cut(this: typeof handle, content) {
    await this.write(String(content).slice(0, 1000));
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  });
  try {
    expect(await drmas(['report', join(root, 'other'), '--to', report])).toEqual({
      code: 2,
      out: '',
      err: expect.stringMatching(/^error: cannot write the report: ENOSPC/),
    });
  } finally {
    full.mockRestore();
  }
  expect(await readFile(report, 'utf8')).toBe(before);
  expect((await readdir(path)).sort()).toEqual(names);
});

it.skipIf(process.platform === 'win32')('puts no page in the place of a device', async () => {
  await symlink('/dev/null', join(root, 'null.html'));
  const { code, err } = await drmas(['report', join(root, 'again'), '--to', join(root, 'null.html')]);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/cannot write .* it is not a regular file/) });
});

it.skipIf(chromium === undefined)(
  'works from a file, without a server (skipped without Chromium)',
  { tags: 'verify' },
  async () => {
    const path = join(root, 'browsed');
    await recordRun(path, { text: hostile });
    await drmas(['report', path]);
    const page = await BrowserPage.open(`file://${join(path, 'report.html')}`);
    try {
      await page.until("document.querySelectorAll('.chart canvas').length > 6");
      expect(await page.evaluate('document.title')).toBe('browsed - drmas'); // not owned
      await page.click('nav.tabs a', 'episodes');
      await page.until("document.querySelector('.episode .turn.good') && document.querySelector('.episode .turn.bad')");
      await page.type('input[type=search]', 'one </script');
      await page.says(/1 of 2 groups/);
      await page.says(/<\/script><script>/);
      expect(await page.evaluate("document.querySelectorAll('main img, main script').length")).toBe(0);
      expect(page.problems).toEqual([]);
    } finally {
      await page.close();
    }
  },
);
