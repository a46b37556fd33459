import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { youngPlans } from './plan-dates.js';

const roots: string[] = [];
afterEach(async () => {
  for (const root of roots.splice(0)) await rm(root, { recursive: true });
});

const PLAN = 'plans/one.md';
const RESULTS = 'results/one.jsonl';
const EMPTIED = 'results without a line';

/** A repository in which each entry is one commit, an hour apart. */
async function repository(...commits: readonly (readonly string[])[]): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'drmas-plans-'));
  roots.push(root);
  const git = (words: readonly string[], hour: number) => {
    const date = new Date(Date.UTC(2026, 0, 1, hour)).toISOString();
    const author = ['-c', 'user.name=x', '-c', 'user.email=x@example.com'];
    execFileSync('git', ['-C', root, ...author, ...words], {
      env: { ...process.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date },
    });
  };
  git(['init', '-q'], 0);
  for (const [hour, files] of commits.entries()) {
    for (const file of files)
      await (file === EMPTIED ? writeFile(join(root, RESULTS), '') : write(root, file, `${hour}`));
    git(['add', '-A'], hour);
    git(['commit', '-q', '-m', 'a commit'], hour);
  }
  return root;
}

async function write(root: string, file: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), file === PLAN ? `Results: ${RESULTS}\n${text}\n` : `${text}\n`);
}

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

  it('is refused if it is not committed, or names no results', async () => {
    const root = await repository([PLAN], [RESULTS]);
    await write(root, PLAN, 'changed');
    expect(await youngPlans(root, 'plans')).toHaveLength(1);
    await writeFile(join(root, PLAN), 'a plan without results');
    expect(await youngPlans(root, 'plans')).toEqual([expect.stringContaining("expected a line such as 'Results: ")]);
  });
});
