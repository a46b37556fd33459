import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ArgumentError, messageOf } from '../../core/errors.js';
import { nodeFiles } from '../../platform/node-files.js';
import { argument, defineCommand } from '../define-command.js';
import { extendedManifest, newManifest, packageRoot, projectName } from '../init/project-manifest.js';

const template = join(packageRoot, 'templates', 'project');

/** What belongs together: where one of them is there, another one's project would be torn apart. */
const TEAM = ['team.ts', 'team.test.ts', 'tasks/train.jsonl', 'tasks/test.jsonl'];

/**
 * What every project has, which stays as it is where it is there. A name that begins with a dot lacks it in the
 * template: npm would leave the file out of the package.
 */
const AROUND = ['README.md', 'tsconfig.json', '.gitignore'];

export const init = defineCommand({
  name: 'init',
  description: 'write a project to begin with: team, recipe, tasks, a test',
  details:
    'writes a project of your own: team, recipe, tasks, a test; into a directory with a package.json it adds them, and ' +
    'never overwrites anything',
  arguments: [argument('directory', 'where to: a new directory, or that of a project')],
  flags: {},
  examples: ['drmas init my-team', 'drmas init .'],
  async run(context, [directory]) {
    const target = resolve(directory);
    try {
      mkdirSync(target, { recursive: true });
      if (!statSync(target).isDirectory()) throw new Error('it is a file');
    } catch (error) {
      throw new ArgumentError(`${directory} cannot be written: ${messageOf(error)}`);
    }
    const present = async (file: string) => nodeFiles.exists(join(target, file));
    const isProject = await present('package.json');
    const manifest = isProject ? extendedManifest(target) : newManifest(target);
    const named = (file: string) => file.replace(/^(team.*)\.ts$/, `$1.${manifest.extension}`);
    for (const file of TEAM.map(named))
      if (await present(file)) throw new ArgumentError(`${join(directory, file)} exists; nothing is overwritten`);

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
      throw new ArgumentError(`${directory} cannot be written: ${messageOf(error)}`);
    }
    const { scripts, added, extension } = manifest;
    const lines = [
      `${directory}: ${(isProject ? written : ['package.json', ...written]).join(', ')}`,
      ...(added.length > 0 ? [`package.json: added ${added.join(', ')}`] : []),
      ...(kept.length > 0 ? [`as they were: ${kept.join(', ')}`] : []),
      ...(kept.includes('.gitignore') ? ['runs lie in runs/, which .gitignore may want to name'] : []),
      ...(extension === 'mts'
        ? ['package.json has no "type": "module", so the files end in .mts: Node reads those as modules']
        : []),
      '',
      'next',
      ...(target === resolve('.') ? [] : [`  cd ${shellWord(directory)}`]),
      '  npm install',
      `  npm run ${scripts.probe}    will reinforcement help?`,
      `  npm run ${scripts.train}    seconds: right answers go from about 36 % to about 97 %`,
      `  npm run ${scripts.watch}    a live dashboard of it in the browser`,
      `  npm run ${scripts.report}   one page about the last run`,
      '',
      `then make it yours: team.${extension} and tasks/ (README.md says how)`,
    ];
    for (const line of lines) context.stdout.write(`${line}\n`);
    return 0;
  },
});

/** A file of the template for this project. */
function filled(text: string, name: string, extension: 'ts' | 'mts'): string {
  const here = text.replaceAll('{{name}}', name);
  if (extension === 'ts') return here;
  return here
    .replaceAll('./team.js', './team.mjs')
    .replaceAll(/\b(team(?:\.test)?)\.ts\b/g, '$1.mts')
    .replace('"*.ts"', '"*.mts"');
}

/** A path as a shell takes it for one word. */
function shellWord(path: string): string {
  if (/^[\w./:@\\-]+$/.test(path) && (process.platform === 'win32' || !path.includes('\\'))) return path;
  return process.platform === 'win32' ? `"${path}"` : `'${path.replaceAll("'", "'\\''")}'`;
}
