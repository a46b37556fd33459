import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { evaluation, step } from '../../test/fixtures/run-events.js';
import { drmas } from '../../test/support/command-line.js';
import { hostile, recordRun } from '../../test/support/recorded-run.js';
import type { History } from '../core/episode.js';
import type { AgentStep } from '../core/events.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-report-'));
});
afterAll(() => rm(root, { recursive: true }));

const tags = (page: string, name: string) => page.match(new RegExp(`<${name}[\\s>]`, 'g'))?.length ?? 0;

describe('the page of one run', () => {
  let page: string;
  let path: string;
  beforeAll(async () => {
    path = join(root, 'hostile');
    await recordRun(path, { text: hostile });
    expect(await drmas(['report', path])).toMatchObject({ code: 0, err: '' });
    page = await readFile(join(path, 'report.html'), 'utf8');
  });

  it('has charts and tables that need no script', () => {
    for (const title of [
      'held-out score',
      'training reward',
      'warm-start loss',
      'gradient norm',
      'predicted inflation',
    ]) {
      expect(page).toMatch(new RegExp(`<figcaption>${title}`));
    }
    expect(page).toMatch(/<circle class="mark"[^>]*><title>spike at step 2: 12 against 0\.9, clip<\/title>/);
    expect(page).toMatch(/score at last<\/th><td>75\.0 % \[/);
    expect(page).toMatch(/Zero at every step: .*clip fraction/);
    expect(page).toMatch(/Who is called when<\/h2>[\s\S]*solver is called in every episode: shared statistics/);
    expect(page).toMatch(/all 12 episodes/);
    for (const tag of ['table', 'figure', 'svg', 'details']) expect(tags(page, `/${tag}`), tag).toBe(tags(page, tag));
  });

  it('lets no text become markup, and no script but its own run', () => {
    expect(page).not.toMatch(/<img|<script>document/);
    expect(page).not.toContain('\u0000');
    expect(tags(page, 'script')).toBe(2);
    const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1] ?? '';
    const script = /<script>([\s\S]*?)<\/script>/.exec(page)?.[1] ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain(`script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`);
    const data = /<script type="application\/json"[^>]*>([\s\S]*?)<\/script>/.exec(page)?.[1] ?? '';
    expect(JSON.parse(data)[0].texts).toContain(`${hostile} 0`);
  });

  it('asks nobody for anything', () => {
    expect(page).not.toMatch(/\b(src|href)="(?!#)/);
    expect(page).not.toMatch(/url\(|@import|fetch\(|https?:/);
  });
});

it('says how many messages of earlier turns no turn wrote, where prompts have such messages', async () => {
  const pageOf = async (name: string, history?: History) => {
    const path = join(root, name);
    const run = await recordRun(path);
    const { solver } = step(3).agents;
    if (history !== undefined) run.emit({ ...step(3), agents: { solver: { ...(solver as AgentStep), history } } });
    expect(await drmas(['report', path])).toMatchObject({ code: 0 });
    return readFile(join(path, 'report.html'), 'utf8');
  };
  const page = await pageOf('with-history', { exact: 2, byText: 1, byCalls: 2, foreign: 3 });
  expect(page).toMatch(/foreign in history<\/th>/);
  expect(page).toContain('37.5 %');
  expect(page).toMatch(/messages in prompts that no turn wrote/);
  expect(await pageOf('without-history')).not.toMatch(/foreign in history|that no turn wrote/);
});

it('has a row for each part of an evaluation, and shows what the team measures', async () => {
  const path = join(root, 'divided');
  await recordRun(path);
  const {
    type: _,
    step: __,
    split: ___,
    samples: ____,
    agents: _____,
    seconds: ______,
    ...scores
  } = evaluation(2, 0.25);
  const hard = { ...scores, passInterval: { low: 0.1, high: 0.9 } };
  const event = {
    ...evaluation(2, 0.5),
    time: '2026-01-01T00:00:00.000Z',
    version: 1,
    slices: { level: { hard } },
    reward: 0.375,
    metrics: { trueVerdicts: 0.25 },
  };
  await appendFile(join(path, 'events.jsonl'), `${JSON.stringify(event)}\n`);
  await drmas(['report', path]);
  const page = await readFile(join(path, 'report.html'), 'utf8');
  expect(page).toMatch(/measured at last<\/th><td>trueVerdicts 0\.25, reward 0\.38<\/td>/);
  expect(page).toMatch(/<figcaption>held-out metrics/);
  expect(page).toMatch(
    /<td>level: hard<\/td><td>256 x 4<\/td><td>25\.0 % \[22\.0, 28\.0\]<\/td><td>30\.0 % \[10\.0, 90\.0\]<\/td>/,
  );
});

describe('the page of several runs', () => {
  it('puts them side by side and says where they differ', async () => {
    const paths = [join(root, 'first'), join(root, 'second')];
    for (const [index, path] of paths.entries()) await recordRun(path, { seed: index + 1 });
    const to = join(root, 'both.html');
    expect((await drmas(['report', ...paths, '--to', to])).code).toBe(0);
    const page = await readFile(to, 'utf8');
    expect(page).toMatch(/<th scope="col">first<\/th><th scope="col">second<\/th>/);
    expect(page).toMatch(/<figcaption>second: entropy/);
    expect(page).toMatch(/<th scope="row">seed<\/th><td>1<\/td><td>2<\/td>/);
    expect((await drmas(['report', ...paths, '--to', to])).code).toBe(0); // a report replaces a report
  });
});

it('refuses what is not a run, and to overwrite what is not a report', async () => {
  expect(await drmas(['report', root])).toMatchObject({ code: 2, err: expect.stringMatching(/is not a run/) });
  const path = join(root, 'kept');
  await recordRun(path);
  const record = join(path, 'recipe.json');
  const before = await readFile(record, 'utf8');
  expect(await drmas(['report', path, '--to', record])).toMatchObject({
    code: 2,
    err: expect.stringMatching(/is not a report/),
  });
  expect(await readFile(record, 'utf8')).toBe(before);
  await writeFile(join(path, 'empty.html'), '');
  expect((await drmas(['report', path, '--to', join(path, 'empty.html')])).code).toBe(0);
  expect((await drmas(['report', path, '--to', join(root, 'no', 'where.html')])).code).toBe(2);
});

const browser = await ['chromium', 'chromium-browser', 'google-chrome'].reduce<Promise<string | undefined>>(
  async (content, name) =>
    (await content) ??
    promisify(execFile)(name, ['--version']).then(
      () => name,
      () => undefined,
    ),
  Promise.resolve(undefined),
);

describe.skipIf(browser === undefined)('in a real browser (skipped where no Chromium is installed)', () => {
  const chromium = async (page: string, ...flags: string[]) => {
    const always = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${join(root, 'profile')}`];
    const { stdout } = await promisify(execFile)(browser ?? '', [...always, ...flags, `file://${page}`], {
      maxBuffer: 1e8,
    });
    return stdout;
  };

  it('shows the episodes as text, coloured by the sign of the advantage, and draws something', async () => {
    const path = join(root, 'browsed');
    await recordRun(path, { text: hostile });
    await drmas(['report', path]);
    const page = join(path, 'report.html');
    const picture = join(root, 'page.png');
    const shown = await chromium(page, '--dump-dom');
    expect(shown).toMatch(/<title>browsed - drmas report<\/title>/); // not owned
    expect(shown).toMatch(/<div class="turn good">/);
    expect(shown).toMatch(/<div class="turn bad">/);
    expect(shown).toMatch(/<pre>&lt;\/script&gt;&lt;script&gt;/);
    expect(shown).toMatch(/advantage -1</);
    expect(shown).not.toMatch(/<img/);
    await chromium(page, '--window-size=1200,2000', `--screenshot=${picture}`);
    expect((await readFile(picture)).subarray(1, 4).toString()).toBe('PNG');
    expect((await stat(picture)).size).toBeGreaterThan(50_000); // a blank page of this size takes 11,000
  }, 60_000);
});
