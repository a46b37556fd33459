import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { youngPlans } from './plan-dates.js';

const roots: string[] = [];
afterEach(async () => {
  for (const root of roots.splice(0)) await rm(root, { recursive: true });
});

const PLAN = 'plans/one.md';
const RESULTS = 'results/one.jsonl';
const EMPTIED = 'results without a line';
const MOVED = 'findings is named research';

/** A repository in which each entry is one commit, an hour apart. */
async function repository(...commits: readonly (readonly string[])[]): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'drmas-plans-'));
  roots.push(root);
  const git = (words: readonly string[], input = '') => execFileSync('git', ['-C', root, ...words], { input });
  git(['init', '-q', '-b', 'main', '--template=']);
  // One process makes all commits.
  const data = (text: string) => `data ${text.length}\n${text}\n`;
  const stream = commits.map((files, hour) => {
    const changes = files.map((file) =>
      file === EMPTIED
        ? `M 644 inline ${RESULTS}\n${data('')}`
        : file === MOVED
          ? 'R findings research\n'
          : `M 644 inline ${file}\n${data(contentOf(file, `${hour}`))}`,
    );
    const when = Date.UTC(2026, 0, 1, hour) / 1000;
    return `commit refs/heads/main\ncommitter x <x@example.com> ${when} +0000\n${data('a commit')}${changes.join('')}\n`;
  });
  git(['fast-import', '--quiet'], stream.join(''));
  git(['reset', '-q', '--hard']);
  return root;
}

const contentOf = (file: string, text: string) =>
  file.endsWith(PLAN) ? `Results: ${file.replace(PLAN, RESULTS)}\n${text}\n` : `${text}\n`;

describe('a plan', () => {
  it('is right if its last commit is older than the first of its results', async () => {
    expect(await youngPlans(await repository([PLAN], [RESULTS], [RESULTS]), 'plans')).toEqual([]);
    expect(await youngPlans(await repository([PLAN]), 'plans')).toEqual([]);
  });

  it('may change before all of its runs are made again', async () => {
    const first = [[PLAN], [RESULTS]];
    expect(await youngPlans(await repository(...first, [PLAN], [EMPTIED], [RESULTS]), 'plans')).toEqual([]);
    expect(await youngPlans(await repository(...first, [EMPTIED], [PLAN]), 'plans')).toEqual([]);
    expect(await youngPlans(await repository(...first, [EMPTIED], [RESULTS], [PLAN]), 'plans')).toHaveLength(1);
  });

  it.each([
    ['committed after its results', [[RESULTS], [PLAN]]],
    ['committed with its results', [[PLAN, RESULTS]]],
    ['changed after its results', [[PLAN], [RESULTS], [PLAN]]],
  ])('is refused if it was %s', async (_, commits) => {
    const errors = await youngPlans(await repository(...commits), 'plans');
    expect(errors).toEqual(['plans/one.md is not older than its results, results/one.jsonl']);
  });

  it('keeps its date if a commit moves it and leaves its text', async () => {
    const [plan, results] = [`findings/${PLAN}`, `findings/${RESULTS}`];
    const moved = async (...commits: readonly (readonly string[])[]) =>
      youngPlans(await repository(...commits, [MOVED]), 'research/plans');
    const error = ['research/plans/one.md is not older than its results, research/results/one.jsonl'];
    expect(await moved([plan], [results])).toEqual([]);
    expect(await moved([results], [plan])).toEqual(error);
    expect(await moved([plan], [results], [plan])).toEqual(error);
    const changed = await repository([plan], [results], [MOVED], [`research/${PLAN}`]);
    expect(await youngPlans(changed, 'research/plans')).toEqual(error);
    const changedByMove = await repository([plan], [results], [MOVED, `research/${PLAN}`]);
    expect(await youngPlans(changedByMove, 'research/plans')).toEqual(error);
  });

  it('is refused if it is not committed, or names no results', async () => {
    const root = await repository([PLAN], [RESULTS]);
    await writeFile(join(root, PLAN), contentOf(PLAN, 'changed'));
    expect(await youngPlans(root, 'plans')).toHaveLength(1);
    await writeFile(join(root, PLAN), 'a plan without results');
    expect(await youngPlans(root, 'plans')).toEqual([expect.stringContaining("expected a line such as 'Results: ")]);
  });
});
