/** Whether each plan was committed before the results that it declares. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Plans whose order the history cannot show any more: one commit, which joins the commits of a day, holds the plan and
 * its first results. docs/research/findings-plan.md names them.
 */
export const JOINED: ReadonlySet<string> = new Set(['baseline.md', 'creditbench.md', 'lemma.md', 'small-groups.md']);

/** The name of `research` until 2026-11-27. Plans of that time name their results by it, and their text is final. */
const FORMER = 'findings/';
const PRESENT = 'research/';
const presentPath = (path: string) => (path.startsWith(FORMER) ? PRESENT + path.slice(FORMER.length) : path);
const bothPaths = (path: string) => (path.startsWith(PRESENT) ? [path, FORMER + path.slice(PRESENT.length)] : [path]);

/**
 * Errors of plans that are younger than their results. A plan is a Markdown file with one line
 * `Results: research/results/NAME.jsonl, ...`. The plan's last commit has to be older than the first commit of each of
 * these files. If all runs are made again, it has to be older than the first commit after the one that emptied the
 * file. A commit that moves a file and leaves its text does not count. A shallow clone has no dates to compare, and
 * gives no errors.
 * @param folder relative to `root`
 */
export async function youngPlans(root: string, folder: string): Promise<string[]> {
  if (!existsSync(join(root, folder))) return [];
  const git = async (...words: string[]) => (await run('git', ['-C', root, ...words])).stdout.trim();
  const isShallow = await git('rev-parse', '--is-shallow-repository').catch(() => 'true'); // no git, or no repository
  if (isShallow === 'true') return [];
  const names = (await readdir(join(root, folder))).filter((name) => name.endsWith('.md'));
  const errors = await Promise.all(names.sort().map((name) => errorsOf(root, `${folder}/${name}`, git)));
  return errors.flat();
}

async function errorsOf(root: string, plan: string, git: (...words: string[]) => Promise<string>): Promise<string[]> {
  const declared = /^Results: (.+)$/m.exec(await readFile(join(root, plan), 'utf8'))?.[1];
  if (declared === undefined) return [`${plan}: expected a line such as 'Results: research/results/NAME.jsonl'`];
  const [plannedIn = '', planned = Number.NaN] = commitOf(
    await git('log', '-1', '-M100%', '--diff-filter=AM', '--format=%H %ct', '--', ...bothPaths(plan)),
  );
  const isChanged = (await git('status', '--porcelain', '--', plan)) !== '';
  const errors: string[] = [];
  for (const results of declared.split(',').map((text) => presentPath(text.trim()))) {
    if (!existsSync(join(root, results))) continue;
    const log = await git(
      'log',
      '--reverse',
      '--no-renames',
      '--numstat',
      '--format=commit %H %ct',
      '--',
      ...bothPaths(results),
    );
    const [madeIn = '', made = Number.POSITIVE_INFINITY] = commitOf(firstOf(log));
    if (JOINED.has(basename(plan)) && madeIn === plannedIn) continue;
    if (isChanged || !(planned < made)) errors.push(`${plan} is not older than its results, ${results}`);
  }
  return errors;
}

/** The commit, as `hash time`, that first filled a file, or filled it again after a commit had emptied it. */
function firstOf(log: string): string {
  let first = '';
  let lines = 0;
  for (const entry of log.split(/^commit /m).slice(1)) {
    const [commit = '', ...changes] = entry.split('\n');
    if (lines === 0) first = commit;
    for (const change of changes) {
      const [added, removed] = change.split('\t').map(Number);
      if (added !== undefined && removed !== undefined) lines += added - removed;
    }
  }
  return lines === 0 ? '' : first;
}

/** A commit and its time in seconds, from a line of `git log`. Empty without a commit. */
function commitOf(line: string): [hash: string, time: number] | [] {
  const [hash, time] = line.split(' ');
  return hash === undefined || time === undefined ? [] : [hash, Number(time)];
}
