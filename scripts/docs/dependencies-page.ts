/** docs/reference/dependencies.md: the software that an installed drmas consists of, from package-lock.json. */
import { LIBRARIES } from '../support/libraries.js';
import { type GeneratedFile, readPage, table } from './pages.js';

interface Locked {
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  /** Whether it is a workspace of this repository, which the package does not install. */
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
  readonly hasInstallScript?: boolean;
}

/** Licences that require a distributor only to include their text. */
const LICENCES = ['MIT', 'Apache-2.0', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD'];
/** Packages that run a script when they are installed: esbuild checks that it runs on this machine. */
const SCRIPTS = ['esbuild'];

const INTRODUCTION = `# Dependencies

The packages that \`npm install drmas\` installs, from the lock file: generated, and checked by \`npm run check\`. Each
has a hash in the lock file. Each licence is one or several of ${LICENCES.join(', ')}.
None but ${SCRIPTS.join(', ')} runs a script when it is installed. \`npm sbom --sbom-format cyclonedx\` (or \`spdx\`) writes the same
as a bill of materials in those formats; \`npm audit\` asks the registry about known faults. A package marked
\`optional\` may be missing, for example on another system.

What is needed to work on drmas itself (\`devDependencies\`) is not part of the package and not listed.`;

/** The licences of a package with several at once: `(Apache-2.0 AND BSD-3-Clause)`. */
const partsOf = (license: string) => license.replace(/^\((.*)\)$/, '$1').split(' AND ');

/** @throws Error naming a package that has no hash, another licence, or a script */
export function dependenciesPage(): GeneratedFile {
  const lock: { packages: Record<string, Locked> } = JSON.parse(readPage('package-lock.json'));
  const dependenciesOf = (file: string): Record<string, string> => JSON.parse(readPage(file)).dependencies;
  const folders = ['.', ...Object.values(LIBRARIES)];
  const dependencies = Object.assign({}, ...folders.map((folder) => dependenciesOf(`${folder}/package.json`)));
  const installed = Object.entries(lock.packages)
    .filter(
      ([path, { link, dev, devOptional }]) =>
        path.startsWith('node_modules/') && link !== true && dev !== true && devOptional !== true,
    )
    .map(([path, locked]) => ({ name: path.slice(path.lastIndexOf('node_modules/') + 13), ...locked }));
  for (const { name, integrity, license = 'none', hasInstallScript } of installed) {
    if (integrity === undefined) throw new Error(`${name}: package-lock.json has no hash of it`);
    if (!partsOf(license).every((part) => LICENCES.includes(part)))
      throw new Error(`${name}: its licence is ${license}`);
    if (hasInstallScript === true && !SCRIPTS.includes(name)) throw new Error(`${name} runs a script when installed`);
  }
  const named = installed.filter(({ name }) => name in dependencies);
  const others = installed.filter(({ name }) => !(name in dependencies));
  const rows = (some: typeof installed) =>
    table(
      ['package', 'version', 'licence', ''],
      some.map(({ name, version, license = '', optional }) => [name, version, license, optional ? 'optional' : '']),
    );
  const text = [
    INTRODUCTION,
    `## Named by drmas and its libraries (${named.length})\n\n${rows(named)}`,
    `## Which those need (${others.length})\n\n${rows(others)}`,
  ].join('\n\n');
  return { path: 'docs/reference/dependencies.md', text: `${text}\n` };
}
