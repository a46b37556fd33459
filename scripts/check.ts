/**
 * `npm run check`: types, lint, walls between rooms, dead code, house rules, generated files, results of findings, and
 * the documents. With names it runs only these parts; `sources` are all but `docs`. Parts run side by side, one for
 * each core; the first that fails ends the check when those beside it have ended.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { LIBRARIES } from './support/libraries.js';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Checks the types of a project. The compiler keeps what it learnt of each file by the hash of its text, in `dist`. */
const typesOf = (project: string, name: string) => [
  ...['node', 'node_modules/typescript-7/bin/tsc', '-p', project, '--noEmit'],
  ...['--incremental', '--tsBuildInfoFile', `dist/check/${name}.tsbuildinfo`],
];

/** The commands of each part; the parts that take longest come first. */
const parts: Readonly<Record<string, readonly (readonly string[])[]>> = {
  docs: [['npm', 'run', '--silent', 'docs', '--', 'check']],
  types: [
    typesOf('tsconfig.json', 'all'),
    typesOf('packages/dashboard/tsconfig.json', 'dashboard'),
    typesOf('apps/site/tsconfig.json', 'site'),
  ],
  findings: [['npx', '--no-install', 'tsx', 'research/main.ts', '--check']],
  house: [['npm', 'run', '--silent', 'house']],
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
      ...Object.values(LIBRARIES).map((folder) => `${folder}/src`),
      'packages/dashboard/src',
      'apps/site/src',
    ],
  ],
  unused: [['npx', '--no-install', 'knip', '--cache', '--cache-location', 'dist/check/knip']],
  generated: [['npx', '--no-install', 'tsx', 'scripts/generate-kernels.ts', 'check']],
};
const SOURCES = Object.keys(parts).filter((name) => name !== 'docs');

/** Runs a command, and prints what it said when it has ended. Returns its exit code. */
function run([command = '', ...args]: readonly string[]): Promise<number> {
  return new Promise((done, failed) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    const said: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk));
    child.once('error', failed);
    child.once('close', (status) => {
      process.stdout.write(Buffer.concat(said));
      done(status ?? 1);
    });
  });
}

async function main(words: readonly string[]): Promise<number> {
  const written = await run(['npm', 'run', '--silent', 'docs', '--', 'types']); // what most parts read
  if (written !== 0) return written;
  const names =
    words.length === 0 ? Object.keys(parts) : words.flatMap((word) => (word === 'sources' ? SOURCES : word));
  const unknown = names.find((name) => parts[name] === undefined);
  if (unknown !== undefined) {
    console.error(`there is no part '${unknown}'; expected sources, ${Object.keys(parts).join(', ')}`);
    return 2;
  }
  const waiting = names.flatMap((name) => parts[name] ?? []);
  let worst = 0;
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined && worst === 0; next = waiting.shift()) {
      const code = await run(next); // `worst` may change meanwhile
      worst = Math.max(worst, code);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  return worst;
}

process.exitCode = await main(process.argv.slice(2));
