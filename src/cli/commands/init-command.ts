import { readFile, realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { ArgumentError, messageOf } from '../../core/errors.js';
import { nodeFiles } from '../../platform/node-files.js';
import { argument, defineCommand } from '../define-command.js';

/** The directory of this package, from its sources as from its compiled files. */
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

export const init = defineCommand({
  name: 'init',
  description: 'write a project to begin with: team, recipe, tasks, a test',
  details: 'writes a project of your own: team, recipe, tasks, a test',
  arguments: [argument('directory', 'where to; must be new or empty')],
  flags: {},
  examples: ['drmas init my-team'],
  async run(context, [directory]) {
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
  },
});

/**
 * The package.json: this very package by its place on this machine, and the others in the versions it was built with.
 */
async function manifest(name: string, target: string) {
  const ours = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as {
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
    dependencies: { drmas: `file:${place.split(sep).join('/')}`, zod: ours.dependencies.zod },
    devDependencies: {
      '@types/node': ours.devDependencies['@types/node'],
      tsx: ours.dependencies.tsx,
      typescript: ours.devDependencies.typescript,
    },
  };
}
