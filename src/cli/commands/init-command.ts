import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ArgumentError, messageOf } from '../../base/errors.js';
import { commandText, nodeFiles } from '../../base/platform.js';
import { argument, defineCommand } from '../define-command.js';
import { extendedManifest, newManifest, packageRoot, projectName } from '../init/project-manifest.js';

const template = join(packageRoot, 'templates', 'project');

/** Files that belong together. If one of them exists, `init` writes nothing. */
const TEAM = ['team.ts', 'team.test.ts', 'tasks/train.jsonl', 'tasks/test.jsonl'];

/**
 * Files of any project. `init` keeps those that exist. The template's names have no leading dot, because npm leaves
 * such files out of a package.
 */
const AROUND = ['README.md', 'tsconfig.json', '.gitignore'];

export const init = defineCommand({
  name: 'init',
  description: 'create a project: team, recipe, tasks, a test',
  details:
    'creates a project with a team, a recipe, tasks and a test, or adds them to a project that has a package.json. It ' +
    'overwrites no file',
  arguments: [argument('directory', 'a new directory, or the directory of a project')],
  flags: {},
  examples: ['drmas init my-team', 'drmas init .'],
  async run(context, [directory]) {
    const target = resolve(directory);
    try {
      mkdirSync(target, { recursive: true });
      if (!statSync(target).isDirectory()) throw new Error('it is a file');
    } catch (error) {
      throw new ArgumentError(`cannot write ${directory}: ${messageOf(error)}`);
    }
    const present = async (file: string) => nodeFiles.exists(join(target, file));
    const isProject = await present('package.json');
    const manifest = isProject ? extendedManifest(target) : newManifest(target);
    const named = (file: string) => file.replace(/^(team.*)\.ts$/, `$1.${manifest.extension}`);
    for (const file of TEAM.map(named))
      if (await present(file)) throw new ArgumentError(`${join(directory, file)} exists; drmas overwrites nothing`);

    const [written, kept]: [string[], string[]] = [[], []];
    try {
      for (const file of [...TEAM, ...AROUND]) {
        const name = named(file);
        if (await present(name)) {
          kept.push(name);
          continue;
        }
        const text = readFileSync(join(template, file.replace(/^\./, '')), 'utf8');
        await nodeFiles.makeDirectory(dirname(join(target, name)));
        await nodeFiles.write(join(target, name), filled(text, projectName(target), manifest.extension));
        written.push(name);
      }
      await nodeFiles.replace(join(target, 'package.json'), manifest.text);
    } catch (error) {
      throw new ArgumentError(`cannot write ${directory}: ${messageOf(error)}`);
    }
    const { scripts, added, extension } = manifest;
    const lines = [
      `${directory}: ${(isProject ? written : ['package.json', ...written]).join(', ')}`,
      ...(added.length > 0 ? [`package.json: added ${added.join(', ')}`] : []),
      ...(kept.length > 0 ? [`unchanged: ${kept.join(', ')}`] : []),
      ...(kept.includes('.gitignore') ? ['add runs/ to .gitignore: drmas writes runs there'] : []),
      ...(extension === 'mts' ? ['the files end in .mts, because package.json has no "type": "module"'] : []),
      '',
      'next',
      ...(target === resolve('.') ? [] : [`  ${commandText(['cd', directory])}`]),
      '  npm install',
      `  npm run ${scripts.plan}     will reinforcement help?`,
      `  npm run ${scripts.train}    seconds: from about 36 % to about 97 % right answers`,
      `  npm run ${scripts.watch}    a live dashboard in the browser`,
      `  npm run ${scripts.report}   one HTML page about the last run`,
      '',
      `then change team.${extension} and tasks/ (see README.md)`,
    ];
    for (const line of lines) context.stdout.write(`${line}\n`);
    return 0;
  },
});

/** A file of the template, filled in for this project. */
function filled(text: string, name: string, extension: 'ts' | 'mts'): string {
  const here = text.replaceAll('{{name}}', name);
  if (extension === 'ts') return here;
  return here
    .replaceAll('./team.js', './team.mjs')
    .replaceAll(/\b(team(?:\.test)?)\.ts\b/g, '$1.mts')
    .replace('"*.ts"', '"*.mts"');
}
