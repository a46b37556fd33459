/**
 * Prepares a release, but does not publish it. On a clean main it runs the checks, sets the version, moves the
 * Unreleased entries of CHANGELOG.md below it, packs, inspects the package, writes the notes to a file, commits and
 * tags. It publishes and pushes nothing: the last lines of its output explain how.
 *
 *   npm run release -- minor            a version, or major, minor, patch
 *   npm run release -- 0.2.0 --dry-run  prints the steps, and changes nothing
 *   npm run release -- patch --checked  without the checks, which were run by hand
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export interface ReleaseOptions {
  /** The root of the repository. */
  readonly root: string;
  /** A version, or which number of it rises. */
  readonly version: string;
  readonly dryRun: boolean;
  /** The commands that must succeed first, each a program with its arguments. */
  readonly checks: readonly (readonly [program: string, ...words: string[]])[];
  /** The day of the release, YYYY-MM-DD. */
  readonly day: string;
  readonly say: (line: string) => void;
}

/** The message for a person if the release was refused: nothing was changed. */
export class Refusal extends Error {}

const CHECKS: ReleaseOptions['checks'] = [
  ['npm', 'run', '--silent', 'check'],
  ['npm', 'test'],
  ['npm', 'run', '--silent', 'verify', '--', 'package'],
];
/**
 * Files that the package must contain, and files that it must not: tests, and files that only this repository needs.
 */
const EXPECTED = ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'dist/src/index.js', 'dist/src/index.d.ts'];
const UNWANTED = /\.test\.(js|ts|d\.ts)$|^(test|bench|scripts|research|node_modules|\.ci|\.github)\//;

/** The next version. @throws Refusal if it is invalid, or not above the present one */
export function nextVersion(present: string, wanted: string): string {
  const [major = 0, minor = 0, patch = 0] = present.split('.').map(Number);
  const rising: Readonly<Record<string, string>> = {
    major: `${major + 1}.0.0`,
    minor: `${major}.${minor + 1}.0`,
    patch: `${major}.${minor}.${patch + 1}`,
  };
  const next = rising[wanted] ?? wanted;
  const numbers = /^(\d+)\.(\d+)\.(\d+)$/.exec(next)?.slice(1).map(Number);
  if (numbers === undefined) throw new Refusal(`expected a version, or major, minor or patch; got '${wanted}'`);
  const [a = 0, b = 0, c = 0] = numbers;
  const isAbove = a - major || b - minor || c - patch;
  if (isAbove <= 0) throw new Refusal(`${next} is not above ${present}`);
  return next;
}

/** The changelog with its unreleased part moved below the version, and that part alone. @throws Refusal without one */
export function moveUnreleased(changelog: string, version: string, day: string): { text: string; notes: string } {
  const [head, ...sections] = changelog.split(/^## /m);
  const at = sections.findIndex((section) => section.startsWith('Unreleased\n'));
  const notes = sections[at]?.slice('Unreleased\n'.length).trim() ?? '';
  if (notes === '') throw new Refusal('CHANGELOG.md has nothing under Unreleased');
  const moved = sections.with(at, `Unreleased\n\n## ${version} (${day})\n\n${notes}\n\n`);
  return { text: `${[head, ...moved].join('## ').trimEnd()}\n`, notes: `# ${version} (${day})\n\n${notes}\n` };
}

/**
 * A package.json or package-lock.json with the version, also as a dependency on the package `name`; the rest stays as
 * it is written.
 */
export function withVersion(json: string, name: string, present: string, version: string): string {
  // A lockfile names the package twice, in its first lines; versions of others come after `node_modules/`.
  const end = json.includes('"node_modules/') ? json.indexOf('"node_modules/') : json.length;
  const head = json
    .slice(0, end)
    .replaceAll(`"version": "${present}"`, `"version": "${version}"`)
    .replaceAll(`"${name}": "^${present}"`, `"${name}": "^${version}"`);
  return head + json.slice(end);
}

/** Makes the release. @returns The version @throws Refusal before anything is changed; Error when a step fails */
export function release({ root, version: wanted, dryRun, checks, day, say }: ReleaseOptions): string {
  const git = (...words: string[]) => execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim();
  const read = (name: string) => readFileSync(join(root, name), 'utf8');
  const branch = git('rev-parse', '--abbrev-ref', 'HEAD');
  if (branch !== 'main') throw new Refusal(`expected the branch main, found ${branch}`);
  const changed = git('status', '--porcelain');
  if (changed !== '') throw new Refusal(`expected a clean tree, found\n${changed}`);
  const { name, version: present } = JSON.parse(read('package.json')) as { name: string; version: string };
  const version = nextVersion(present, wanted);
  const tag = `v${version}`;
  if (git('tag', '--list', tag) !== '') throw new Refusal(`the tag ${tag} exists`);
  const { text, notes } = moveUnreleased(read('CHANGELOG.md'), version, day);
  say(`${name} ${present} -> ${version}`);

  const files = new Map([['CHANGELOG.md', text]]);
  const creator = `create-${name}`; // the package of \`npm create\`, which depends on this one
  const versioned = ['package.json', 'package-lock.json', `${creator}/package.json`];
  for (const file of versioned.filter((each) => existsSync(join(root, each))))
    files.set(file, withVersion(read(file), name, present, version));
  const steps = [...checks.map((words) => words.join(' ')), `write ${[...files.keys()].join(', ')}`, 'npm pack'];
  if (dryRun) {
    for (const step of [...steps, `git commit, git tag ${tag}`]) say(`would do: ${step}`);
    say(notes);
    return version;
  }
  for (const [program, ...words] of checks) {
    say([program, ...words].join(' '));
    execFileSync(program, words, { cwd: root, stdio: 'inherit' });
  }
  for (const [file, content] of files) writeFileSync(join(root, file), content);
  const folder = join(root, 'release');
  try {
    mkdirSync(folder, { recursive: true });
    const packed = pack(root, folder);
    if (files.has(`${creator}/package.json`))
      execFileSync('npm', ['pack', `./${creator}`, '--pack-destination', folder], { cwd: root, stdio: 'ignore' });
    writeFileSync(join(folder, `notes-${version}.md`), notes);
    git('add', ...files.keys());
    git('commit', '--quiet', '--message', `Version ${version}`);
    git('tag', '--annotate', tag, '--message', notes);
    say(`release/${packed}, release/notes-${version}.md, commit and tag ${tag} are made; nothing was sent anywhere`);
  } catch (error) {
    git('checkout', '--quiet', 'HEAD', '--', ...files.keys());
    throw error;
  }
  say(`to publish: git push --follow-tags, then npm publish for each release/*-${version}.tgz`);
  return version;
}

/** Packs, and inspects the content. @returns The file's name */
function pack(root: string, folder: string): string {
  const words = ['pack', '--json', '--pack-destination', folder];
  const output = execFileSync('npm', words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  const [packed] = JSON.parse(output.slice(output.search(/^\[$/m))) as [
    { filename: string; files: { path: string }[] },
  ];
  const paths = packed.files.map(({ path }) => path);
  const missing = EXPECTED.filter((path) => !paths.includes(path));
  const unwanted = paths.filter((path) => UNWANTED.test(path));
  if (missing.length > 0) throw new Error(`the package lacks ${missing.join(', ')}`);
  if (unwanted.length > 0) throw new Error(`the package holds ${unwanted.slice(0, 5).join(', ')}`);
  return packed.filename;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const words = process.argv.slice(2);
  try {
    release({
      root: process.cwd(),
      version: words.find((word) => !word.startsWith('--')) ?? '',
      dryRun: words.includes('--dry-run'),
      checks: words.includes('--checked') ? [] : CHECKS,
      day: new Date().toISOString().slice(0, 10),
      say: console.log,
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.error(`nothing was done: ${error.message}`);
    process.exitCode = 2;
  }
}
