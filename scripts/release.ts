/**
 * Prepares a release, but does not publish it. On a clean main it runs the checks, sets the version, moves the
 * Unreleased entries of CHANGELOG.md below it, packs and inspects each package, builds the PDF of the paper if LaTeX is
 * there, writes the notes to a file, commits and tags. It publishes and pushes nothing: the last lines of its output
 * explain how.
 *
 *   npm run release -- minor            a version, or major, minor, patch
 *   npm run release -- 0.2.0 --dry-run  prints the steps, and changes nothing
 *   npm run release -- patch --checked  without the checks, which were run by hand
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
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
  /** The command that builds the paper into the folder that is its last word: `paper.pdf`, if it can. Default: none. */
  readonly paper?: readonly [program: string, ...words: string[]];
  readonly say: (line: string) => void;
}

/** The message for a person if the release was refused: nothing was changed. */
export class Refusal extends Error {}

const CHECKS: ReleaseOptions['checks'] = [
  ['npm', 'run', '--silent', 'check'],
  ['npm', 'test'],
  ['npm', 'run', '--silent', 'verify', '--', 'package'],
];
const PAPER: NonNullable<ReleaseOptions['paper']> = [
  ...(['npx', '--no-install', 'tsx', 'research/main.ts', '--paper'] as const),
];
/**
 * Files that each package must contain beside those that its package.json names, and files that it must not: tests, and
 * files that only this repository needs.
 */
const EXPECTED = ['package.json', 'README.md', 'LICENSE'];
const UNWANTED = /\.test\.(js|ts|d\.ts)$|^(test|scripts|research|node_modules|\.ci|\.github)\//;

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

interface Manifest {
  name?: string;
  version?: string;
  readonly private?: boolean;
  readonly files?: readonly string[];
  [field: string]: unknown;
}

const DEPENDENCIES = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'] as const;

/**
 * A package.json or package-lock.json with the new version: of the packages `names`, and wherever these are needed. The
 * ranges of other packages stay.
 */
export function withVersion(json: string, names: ReadonlySet<string>, present: string, version: string): string {
  const raise = (manifest: Manifest) => {
    if (names.has(manifest.name ?? '') && manifest.version === present) manifest.version = version;
    for (const kind of DEPENDENCIES) {
      const needed = (manifest[kind] ?? {}) as Record<string, string>;
      for (const name of Object.keys(needed).filter((each) => names.has(each)))
        needed[name] = `${needed[name]}`.replace(present, version);
    }
  };
  const whole = JSON.parse(json) as Manifest & { packages?: Record<string, Manifest> };
  raise(whole);
  // A lockfile has the packages of the workspace under their folders, and all others below node_modules.
  for (const [folder, manifest] of Object.entries(whole.packages ?? {}))
    if (!folder.startsWith('node_modules/')) raise(manifest);
  return `${JSON.stringify(whole, null, 2)}\n`;
}

/** The packages that a release publishes, as folders with names: the root, and those below it that are not private. */
function publishedPackages(root: string): (readonly [folder: string, name: string])[] {
  const folders = ['packages', 'apps'].flatMap((place) => {
    if (!existsSync(join(root, place))) return [];
    return readdirSync(join(root, place)).map((name) => `${place}/${name}`);
  });
  return ['.', 'create-drmas', ...folders.sort()].flatMap((folder) => {
    const file = join(root, folder, 'package.json');
    if (!existsSync(file)) return [];
    const { name = folder, private: isPrivate } = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
    return isPrivate === true ? [] : [[folder, name] as const];
  });
}

/** Makes the release. @returns The version @throws Refusal before anything is changed; Error when a step fails */
export function release({ root, version: wanted, dryRun, checks, day, paper, say }: ReleaseOptions): string {
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
  const packages = publishedPackages(root);
  const manifests = packages.map(([folder]) => join(folder, 'package.json'));
  const names = new Set(packages.map(([, each]) => each));
  for (const file of [...manifests, 'package-lock.json'].filter((each) => existsSync(join(root, each))))
    files.set(file, withVersion(read(file), names, present, version));
  const steps = [...checks.map((words) => words.join(' ')), `write ${[...files.keys()].join(', ')}`, 'npm pack'];
  if (paper !== undefined) steps.push(paper.join(' '));
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
    const packed = packages.map(([each]) => `release/${pack(join(root, each), folder)}`);
    if (paper !== undefined) packed.push(...buildPaper(root, paper, version));
    writeFileSync(join(folder, `notes-${version}.md`), notes);
    git('add', ...files.keys());
    git('commit', '--quiet', '--message', `Version ${version}`);
    git('tag', '--annotate', tag, '--message', notes);
    say(`${packed.join(', ')}, release/notes-${version}.md, commit and tag ${tag} are made; nothing was sent anywhere`);
  } catch (error) {
    git('checkout', '--quiet', 'HEAD', '--', ...files.keys());
    throw error;
  }
  say(`to publish: git push --follow-tags, then npm publish for each release/*-${version}.tgz`);
  return version;
}

/** Builds the paper beside the packages. @returns Its path; nothing if there is no PDF, which its command explains */
function buildPaper(
  root: string,
  [program, ...words]: NonNullable<ReleaseOptions['paper']>,
  version: string,
): string[] {
  const built = 'release/paper';
  execFileSync(program, [...words, built], { cwd: root, stdio: 'inherit' });
  const pdf = join(root, built, 'paper.pdf');
  const path = `release/paper-${version}.pdf`;
  const isThere = existsSync(pdf);
  if (isThere) renameSync(pdf, join(root, path));
  rmSync(join(root, built), { recursive: true });
  return isThere ? [path] : [];
}

/** Packs a package, and inspects its content. @returns The file's name */
function pack(packed: string, folder: string): string {
  const words = ['pack', '--json', '--pack-destination', folder];
  const output = execFileSync('npm', words, { cwd: packed, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  const [{ name, filename, files }] = JSON.parse(output.slice(output.search(/^\[$/m))) as [
    { name: string; filename: string; files: { path: string }[] },
  ];
  const paths = files.map(({ path }) => path);
  const { exports, bin } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as Manifest;
  const missing = [...EXPECTED, ...filesNamedIn([exports, bin])].filter((path) => !paths.includes(path));
  const unwanted = paths.filter((path) => UNWANTED.test(path));
  if (missing.length > 0) throw new Error(`the package ${name} lacks ${missing.join(', ')}`);
  if (unwanted.length > 0) throw new Error(`the package ${name} holds ${unwanted.slice(0, 5).join(', ')}`);
  return filename;
}

/** The files that a part of a package.json names, but for those of patterns. */
function filesNamedIn(part: unknown): string[] {
  if (typeof part === 'string') return part.includes('*') ? [] : [part.replace(/^\.\//, '')];
  if (typeof part !== 'object' || part === null) return [];
  return Object.values(part).flatMap(filesNamedIn);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const words = process.argv.slice(2);
  try {
    release({
      root: process.cwd(),
      version: words.find((word) => !word.startsWith('--')) ?? '',
      dryRun: words.includes('--dry-run'),
      checks: words.includes('--checked') ? [] : CHECKS,
      paper: PAPER,
      day: new Date().toISOString().slice(0, 10),
      say: console.log,
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.error(`nothing was done: ${error.message}`);
    process.exitCode = 2;
  }
}
