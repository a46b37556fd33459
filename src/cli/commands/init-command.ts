import { readFile, realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { ArgumentError, messageOf } from '../../core/errors.js';
import { nodeFiles } from '../../platform/node-files.js';
import type { CommandContext } from '../command-context.js';

/** Where this package lies: the same from its sources and compiled. */
const packageRoot = dirname(createRequire(import.meta.url).resolve('drmas/package.json'));
const template = join(packageRoot, 'templates', 'project');

/** Files of the template. Those that begin with a dot lose it there: npm would leave them out of the package. */
const files = [
  'README.md',
  'team.ts',
  'team.test.ts',
  'tsconfig.json',
  'tasks/train.jsonl',
  'tasks/test.jsonl',
  '.gitignore',
  '.npmrc',
];

/** `drmas init <directory>`: a project that a person edits and runs at once. */
export async function initCommand(context: CommandContext, directory: string): Promise<number> {
  const target = resolve(directory);
  const present = await nodeFiles.list(target).catch(() => ['']); // a file of that name
  if (present.length > 0) throw new ArgumentError(`${directory} exists and is not empty; nothing is overwritten`);
  const name =
    basename(target)
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]+/g, '-')
      .replaceAll(/^-+|-+$/g, '') || 'team';
  const written = ['package.json', ...files];
  try {
    await nodeFiles.makeDirectory(join(target, 'tasks'));
    await nodeFiles.write(join(target, 'package.json'), `${JSON.stringify(await manifest(name, target), null, 2)}\n`);
    for (const file of files) {
      const text = await readFile(join(template, file.replace(/^\./, '')), 'utf8');
      await nodeFiles.write(join(target, file), text.replaceAll('{{name}}', name));
    }
  } catch (error) {
    throw new ArgumentError(`${directory} cannot be written: ${messageOf(error)}`);
  }
  const lines = [
    `${directory}: ${written.join(', ')}`,
    '',
    'next',
    `  cd ${directory}`,
    '  npm install',
    '  npm run probe',
    '  npm run train',
  ];
  for (const line of lines) context.stdout.write(`${line}\n`);
  return 0;
}

/** package.json: this very package, by its place on this machine, and of the others the versions that it was made with. */
async function manifest(name: string, target: string) {
  const own = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  const place = relative(await realpath(target), await realpath(packageRoot));
  return {
    name,
    private: true,
    type: 'module',
    scripts: {
      train: 'drmas train team.ts',
      probe: 'drmas probe team.ts',
      test: 'node --import tsx --test team.test.ts',
      check: 'tsc',
    },
    dependencies: { drmas: `file:${place.split(sep).join('/')}`, zod: own.dependencies.zod },
    devDependencies: {
      '@types/node': own.devDependencies['@types/node'],
      tsx: own.dependencies.tsx,
      typescript: own.devDependencies.typescript,
    },
  };
}
