/** The package.json of a project that uses drmas: a new one, or an existing one with the missing entries added. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, sep } from 'node:path';
import { ArgumentError, isObject, messageOf } from '@drmas/engine/errors';
import { libraryFolders } from '../../teams/watchdog.js';

/** The directory of this package, from its sources as from its compiled files. */
export const packageRoot = dirname(createRequire(import.meta.url).resolve('drmas/package.json'));

type Entries = Readonly<Record<string, string>>;

interface Manifest {
  readonly type?: string;
  readonly scripts?: Entries;
  readonly dependencies?: Entries;
  readonly devDependencies?: Entries;
  /** Packages that examples alone import, in tested versions. */
  readonly exampleDependencies?: Entries;
}

export interface PlannedManifest {
  readonly text: string;
  /** The extension of TypeScript files that are ES modules in this project. */
  readonly extension: 'ts' | 'mts';
  readonly scripts: Entries;
  readonly added: readonly string[];
}

export interface ProjectKind {
  readonly scripts: (extension: PlannedManifest['extension']) => Entries;
  /** Names of packages beside drmas and zod, in the versions of this package. */
  readonly packages: readonly string[];
}

export const recipeScripts = (file: string): Entries => ({
  train: `drmas train ${file}`,
  plan: `drmas plan ${file} --play`,
  report: 'drmas report',
  watch: 'drmas watch',
});

export const templateKind: ProjectKind = {
  scripts: (extension) => ({
    ...recipeScripts(`team.${extension}`),
    test: `node --import tsx --test team.test.${extension}`,
    check: 'tsc',
  }),
  packages: [],
};

export function newManifest(target: string, kind: ProjectKind): PlannedManifest {
  const scripts = kind.scripts('ts');
  const names = Object.fromEntries(Object.keys(scripts).map((name) => [name, name]));
  const manifest = { name: projectName(target), private: true, type: 'module', scripts, ...packages(target, kind) };
  return { text: `${JSON.stringify(manifest, null, 2)}\n`, extension: 'ts', scripts: names, added: [] };
}

export const projectName = (target: string): string =>
  basename(target)
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '') || 'team';

/**
 * The existing package.json with the missing scripts and packages added. A script whose name is taken gets the prefix
 * `drmas:`, and a number if that name is taken too.
 * @throws ArgumentError when the file cannot be read
 */
export function extendedManifest(target: string, kind: ProjectKind): PlannedManifest {
  const path = join(target, 'package.json');
  let there: Manifest;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)); // without a byte order mark
    const parsed: unknown = JSON.parse(text);
    if (!isObject(parsed)) throw new Error('expected an object');
    there = parsed as Manifest;
  } catch (error) {
    throw new ArgumentError(`cannot read ${path}: ${messageOf(error)}`);
  }
  const extension = there.type === 'module' ? 'ts' : 'mts';
  const names: Record<string, string> = {};
  const scripts: Record<string, string> = {};
  for (const [name, command] of Object.entries(kind.scripts(extension))) {
    const free = freeName(there.scripts, name, command);
    names[name] = free;
    if (there.scripts?.[free] === undefined) scripts[free] = command;
  }
  const { dependencies, devDependencies } = packages(target, kind);
  const lacking = (wanted: Entries) =>
    Object.fromEntries(
      Object.entries(wanted).filter(
        ([name]) => there.dependencies?.[name] === undefined && there.devDependencies?.[name] === undefined,
      ),
    );
  const [needed, neededToDevelop] = [lacking(dependencies), lacking(devDependencies)];
  const joined = (before: Entries | undefined, more: Entries) =>
    before === undefined && Object.keys(more).length === 0 ? {} : { ...before, ...more };
  const manifest = {
    ...there,
    scripts: joined(there.scripts, scripts),
    dependencies: joined(there.dependencies, needed),
    devDependencies: joined(there.devDependencies, neededToDevelop),
  };
  const indent = /^[ \t]+(?=")/m.exec(text)?.[0] ?? '  ';
  return {
    text: `${JSON.stringify(manifest, null, indent)}\n`.replaceAll('\n', text.includes('\r\n') ? '\r\n' : '\n'),
    extension,
    scripts: names,
    added: [scripts, needed, neededToDevelop].flatMap((entries) => Object.keys(entries)),
  };
}

/** The first name for a script that no other script has. */
function freeName(scripts: Entries = {}, name: string, command: string): string {
  const isFree = (candidate: string) => scripts[candidate] === undefined || scripts[candidate] === command;
  if (isFree(name)) return name;
  for (let number = 1; ; number++) {
    const candidate = `drmas:${name}${number === 1 ? '' : `-${number}`}`;
    if (isFree(candidate)) return candidate;
  }
}

/** This package, and the other packages in the versions that it was built with. */
function packages(target: string, kind: ProjectKind) {
  const ours = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as Required<Manifest>;
  const { zod = '' } = ours.dependencies;
  const { '@types/node': node = '', tsx = '', typescript = '' } = ours.devDependencies;
  const known: Entries = { ...ours.exampleDependencies, ...ours.devDependencies, ...ours.dependencies };
  const more = Object.fromEntries(
    kind.packages.flatMap((name) => (known[name] === undefined ? [] : [[name, known[name]]])),
  );
  return {
    dependencies: { ...more, ...ownPackages(target), zod },
    devDependencies: { '@types/node': node, tsx, typescript },
  };
}

/** drmas; and its libraries too if they were installed from files, because no registry has them then. */
function ownPackages(target: string): Entries {
  const libraries = [...libraryFolders()].map(([name, folder]) => [name, specifier(target, name, folder)] as const);
  const fromFiles = libraries.filter(([, place]) => place.endsWith('.tgz'));
  return { ...Object.fromEntries(fromFiles), drmas: specifier(target, 'drmas', packageRoot) };
}

/**
 * The specifier of a package: its version if it came from a registry, else its file or folder relative to the project.
 */
function specifier(target: string, name: string, folder: string): string {
  const installed = installedFrom(name, folder);
  if (installed !== undefined && /^https?:/.test(installed.resolved)) return `^${installed.version}`;
  const tarball = installed && join(installed.root, installed.resolved.replace(/^file:/, ''));
  const place = tarball !== undefined && existsSync(tarball) ? tarball : folder;
  return `file:${relative(realpathSync(target), realpathSync(place)).split(sep).join('/')}`;
}

function installedFrom(name: string, folder: string) {
  const modules = folder.slice(0, -name.length - 1);
  try {
    const lock = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as {
      readonly packages: Readonly<Record<string, { readonly version: string; readonly resolved: string }>>;
    };
    const entry = lock.packages[`node_modules/${name}`];
    return entry && { ...entry, root: dirname(modules) };
  } catch {
    return undefined;
  }
}
