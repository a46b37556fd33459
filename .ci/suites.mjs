/**
 * Chooses which of the slow checks a commit gets: a function of the commit and of the history before it, so the same
 * commit passes or fails on any day.
 *
 * A suite has its turn if a commit of the last day changed one of its paths: of the day before the date of the commit
 * itself. Those with the most changed files come first, until `BUDGET_SECONDS` are used up; what is left out is named.
 * Of the files with slow tests a commit gets those that changed, with those whose source changed, and a quarter of the
 * others by the hash of its tree, up to `MOST_SLOW`. `CI_ALL=1` chooses everything. Without a history everything counts
 * as changed.
 *
 * Prints lines of `suite NAME`, `slow FILE` and `skipped NAME, because ...`.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Changes of this many hours before a commit count as its own, because a landing brings many commits. */
const HOURS = 24;
/** The seconds of two quiet cores that the chosen suites may take together, beside the daily tests. */
const BUDGET_SECONDS = 900;
/** A commit gets one in so many of the other files with slow tests. */
const SHARE = 4;
/** The most files with slow tests: 12 s each on two quiet cores. */
const MOST_SLOW = 45;

/**
 * @typedef {object} Suite
 * @property {readonly string[]} paths What it checks, from the root: a change below one of them gives it a turn
 * @property {number} seconds Its time with two quiet cores, once its packages are installed
 */

/** @type {Readonly<Record<string, Suite>>} The suites of `npm run verify`, by name. */
export const SUITES = {
  arm: { paths: ['packages/engine/native', 'scripts/arm.ts', 'packages/engine/src/tensor/native'], seconds: 200 },
  bundlers: {
    paths: ['src/public', 'src/serve', 'src/gateway/agents', 'src/index.ts', 'package-lock.json', 'test/bundlers'],
    seconds: 60,
  },
  evals: { paths: ['src/serve', 'src/gateway/dialects', 'test/evals'], seconds: 160 },
  exports: {
    paths: [
      'packages/engine/src/model/formats',
      'packages/engine/src/model/tokenizers',
      'packages/engine/src/hub',
      'test/exports',
    ],
    seconds: 110,
  },
  frameworks: {
    paths: ['src/gateway/agents', 'src/gateway/dialects', 'src/runs/traces', 'examples', 'test/frameworks'],
    seconds: 300,
  },
  gateway: {
    paths: ['src/gateway', 'src/teams/rollout', 'research/creditbench', 'test/gateway'],
    seconds: 120,
  },
  'gpu-short': {
    paths: ['packages/webgpu/src', 'packages/engine/src/tensor/kernels.ts', 'test/gpu'],
    seconds: 200,
  },
  hosts: { paths: ['src/cluster', 'test/hosts'], seconds: 60 },
  openworld: { paths: ['src/teams/tasks', 'test/openworld'], seconds: 200 },
  queue: { paths: ['src/cluster', 'src/teams/rollout', 'test/queue'], seconds: 160 },
  ray: { paths: ['src/cluster/ray', 'src/runs/studies/ablation', 'src/cli/with-ray.ts', 'test/ray'], seconds: 250 },
  real: {
    paths: [
      'packages/engine/native',
      'packages/engine/src/tensor',
      'packages/engine/src/model',
      'packages/engine/src/embedded',
      'test/real',
    ],
    seconds: 300,
  },
  remote: {
    paths: ['packages/tinker/src/client', 'packages/engine/src/contract', 'test/contracts/backend', 'test/remote'],
    seconds: 500,
  },
  s3: { paths: ['src/cluster/objects', 'src/method/store', 'test/s3'], seconds: 110 },
  sanitizers: { paths: ['packages/engine/native', 'scripts/sanitizers.ts', 'test/native'], seconds: 250 },
  schemas: { paths: ['packages/engine/src/base/core/validation', 'test/schemas'], seconds: 60 },
  servers: {
    paths: [
      'packages/engine/src/base/platform',
      'src/gateway',
      'src/serve',
      'packages/tinker/src/server',
      'test/servers',
    ],
    seconds: 50,
  },
  site: {
    paths: [
      'apps/site',
      'packages/dashboard',
      'scripts/site.ts',
      'scripts/site-pages.ts',
      'docs/README.md',
      'test/browser',
    ],
    seconds: 160,
  },
  templates: {
    paths: ['packages/engine/src/model/jinja', 'packages/engine/src/model/tool-formats', 'test/templates'],
    seconds: 150,
  },
  tinker: { paths: ['packages/tinker/src/server', 'test/tinker-sdk'], seconds: 80 },
  tokenizers: { paths: ['packages/engine/src/model/tokenizers', 'test/tokenizers'], seconds: 120 },
  torch: {
    paths: [
      'packages/engine/python',
      'packages/engine/src/torch',
      'packages/engine/src/devices',
      'packages/engine/src/contract',
      'test/contracts',
      'test/torch',
    ],
    seconds: 180,
  },
  trackers: { paths: ['src/runs/trackers', 'packages/engine/src/base/core/events.ts', 'test/trackers'], seconds: 60 },
};

/** The checks of `npm run verify` that `.ci/run` never chooses, each with the reason. */
export const APART = {
  slow: 'its files are chosen one by one',
  wasm: 'each commit gets it',
  package: 'each commit gets the packed package in a folder of its own',
  faults: 'each commit gets a sample',
  prebuilt: 'it needs Zig, and runs before a release',
  long: 'it takes an hour, and runs before a release',
  'queue-rate': 'it compares speeds, which other work on the machine changes',
  samplers: 'vLLM and SGLang need more memory than a small machine has',
  gpu: 'gpu-short is a part of it',
  'gpu-run': 'it takes half an hour on a driver in software',
  'gpu-contract': 'it takes half an hour on a driver in software',
};

/** Whether a path is `folder`, or lies below it. */
const isBelow = (path, folder) => path === folder || path.startsWith(`${folder}/`);

/**
 * @param {object} commit
 * @param {string} commit.tree The hash of its tree, or another text that names its content
 * @param {readonly string[] | undefined} commit.changed The paths that it and the commits of the day before it changed;
 *   undefined if that is unknown
 * @param {readonly string[]} commit.slow The files with slow tests
 * @param {boolean} [commit.all] Whether everything is chosen
 * @returns {{ suites: string[], slow: string[], skipped: [name: string, why: string][] }} `suites` in their order
 */
export function choose({ tree, changed, slow, all = false }) {
  const files = changed ?? [];
  const weighted = Object.entries(SUITES)
    .map(([name, { paths, seconds }]) => {
      const weight = files.filter((file) => paths.some((path) => isBelow(file, path))).length;
      return { name, seconds, weight };
    })
    .sort((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1));
  const suites = [];
  const skipped = [];
  let left = all ? Number.POSITIVE_INFINITY : BUDGET_SECONDS;
  for (const { name, seconds, weight } of weighted) {
    if (!all && changed !== undefined && weight === 0)
      skipped.push([name, 'no commit of the last day changed what it checks']);
    else if (seconds > left) skipped.push([name, 'suites of which more changed use up the time']);
    else {
      suites.push(name);
      left -= seconds;
    }
  }
  const draw = (file) => createHash('sha256').update(`${tree} ${file}`).digest().readUInt32BE(0);
  const changes = (file) =>
    changed === undefined || files.includes(file) || files.includes(file.replace('.test.ts', '.ts'));
  const inTurn = slow
    .map((file) => ({ file, first: changes(file), drawn: draw(file) }))
    .filter(({ first, drawn }) => all || first || drawn % SHARE === 0)
    .sort((a, b) => Number(b.first) - Number(a.first) || a.drawn - b.drawn)
    .slice(0, all ? slow.length : MOST_SLOW)
    .map(({ file }) => file);
  const others = slow.length - inTurn.length;
  if (others > 0) skipped.push([`${others} of ${slow.length} files with slow tests`, 'the tree draws others']);
  return { suites, skipped, slow: inTurn.sort() };
}

const root = fileURLToPath(new URL('..', import.meta.url));

/** What git prints, or undefined if it fails. */
function git(...words) {
  const { status, stdout } = spawnSync('git', words, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/** The paths that HEAD and the commits of the day before it changed; undefined without a history. */
function changedPaths() {
  const date = Number(git('log', '-1', '--format=%ct'));
  if (!(date > 0) || git('rev-parse', '--is-shallow-repository') !== 'false') return undefined;
  // By the dates of the commits and not by the clock; a merge counts with what it brought.
  const since = `--since=${date - HOURS * 3600}`;
  const listed = git('log', '-m', '--first-parent', since, '--format=', '--name-only', '--no-renames', '-z', 'HEAD');
  return listed === undefined ? undefined : [...new Set(listed.split('\0').filter((path) => path !== ''))];
}

/** The files that name slow tests, as test/groups.ts finds them. */
function slowFiles(folder = '') {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory())
      return ['node_modules', '.git', 'dist', 'templates'].includes(entry.name) ? [] : slowFiles(path);
    if (!entry.isFile() || !entry.name.endsWith('.test.ts')) return [];
    return /@module-tag verify\b|\btags\b/.test(readFileSync(join(root, path), 'utf8')) ? [path] : [];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const tree = git('rev-parse', 'HEAD^{tree}') ?? 'no history';
  const changed = changedPaths();
  const { suites, slow, skipped } = choose({
    tree,
    changed,
    slow: slowFiles().sort(),
    all: process.env.CI_ALL === '1',
  });
  for (const name of suites) console.log(`suite ${name}`);
  for (const file of slow) console.log(`slow ${file}`);
  for (const [name, why] of skipped) console.log(`skipped ${name}, because ${why} (CI_ALL=1 makes all checks)`);
}
