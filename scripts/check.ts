/**
 * `npm run check`: types, lint, walls between rooms, dead code, house rules, generated files, results of findings, and
 * the documents. With names it runs only these parts; `sources` are all but `docs`.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Checks the types of a project. The compiler keeps what it learnt of each file by the hash of its text, in `dist`. */
const typesOf = (project: string, name: string) => [
  ...['node', 'node_modules/typescript-7/bin/tsc', '-p', project, '--noEmit'],
  ...['--incremental', '--tsBuildInfoFile', `dist/check/${name}.tsbuildinfo`],
];

/** The commands of each part. */
const parts: Readonly<Record<string, readonly (readonly string[])[]>> = {
  types: [
    typesOf('tsconfig.json', 'all'),
    typesOf('packages/dashboard/tsconfig.json', 'dashboard'),
    typesOf('apps/site/tsconfig.json', 'site'),
  ],
  lint: [['npx', '--no-install', 'biome', 'check', '--error-on-warnings', '.']],
  walls: [
    [
      'npx',
      '--no-install',
      'depcruise',
      '--config',
      '.dependency-cruiser.cjs',
      'src',
      'recipes',
      'packages/dashboard/src',
      'apps/site/src',
    ],
  ],
  unused: [['npx', '--no-install', 'knip']],
  house: [['npm', 'run', '--silent', 'house']],
  generated: [['npx', '--no-install', 'tsx', 'scripts/generate-kernels.ts', 'check']],
  findings: [['npx', '--no-install', 'tsx', 'research/main.ts', '--check']],
  docs: [['npm', 'run', '--silent', 'docs', '--', 'check']],
};
const SOURCES = Object.keys(parts).filter((name) => name !== 'docs');

function main(words: readonly string[]): number {
  const names =
    words.length === 0 ? Object.keys(parts) : words.flatMap((word) => (word === 'sources' ? SOURCES : word));
  const unknown = names.find((name) => parts[name] === undefined);
  if (unknown !== undefined) {
    console.error(`there is no part '${unknown}'; expected sources, ${Object.keys(parts).join(', ')}`);
    return 2;
  }
  for (const [command = '', ...args] of names.flatMap((name) => parts[name] ?? [])) {
    const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
    if (error) throw error;
    if (status !== 0) return status ?? 1;
  }
  return 0;
}

process.exitCode = main(process.argv.slice(2));
