/** The commands that pages tell readers to type: scripts of npm and commands of drmas, with their flags. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { commands, shortNames } from '../../src/cli/commands/index.js';
import { type Command, flagName } from '../../src/cli/define-command.js';
import { newManifest, templateKind } from '../../src/cli/init/project-manifest.js';
import { checks } from '../verify.js';
import { markdownPages, readPage, root } from './pages.js';

/** Pages about the past, whose commands need not work any more. A plan stays as it was declared. */
const HISTORY = /^(CHANGELOG\.md|docs\/lab-notes\/|docs\/decisions\/|research\/plans\/)/;

/** Commands, flags and npm scripts in pages that do not exist, one line each. */
export function unknownCommands(): string[] {
  const { scripts } = JSON.parse(readPage('package.json')) as { readonly scripts: object };
  const names = new Set([
    ...Object.keys(scripts),
    ...Object.keys(newManifest(join(root, 'templates'), templateKind).scripts),
  ]);
  const pages = markdownPages().filter((page) => !HISTORY.test(page));
  return [
    ...pages.flatMap((page) => commandFaults(page, readPage(page), names)),
    ...programs().flatMap((file) => unknownScripts(readPage(file), names).map((fault) => `${file}: ${fault}`)),
  ];
}

/** Sources and scripts, which may name scripts of npm in code and comments. Tests of this file name wrong ones. */
const programs = (): string[] =>
  execFileSync('git', ['ls-files', '.ci', '.github', '*.ts', '*.tsx', '*.mjs'], { cwd: root })
    .toString()
    .split('\n')
    .filter((file) => file !== '' && !file.endsWith('structure.test.ts'));

/** The commands of a page that do not exist, one line each. */
export const commandFaults = (page: string, text: string, scripts: ReadonlySet<string>): string[] =>
  [
    ...codeOf(text).flatMap((line) => [...unknownScripts(line, scripts), ...wrongUses(line)]),
    ...missingFiles(text),
  ].map((fault) => `${page}: ${fault}`);

/** Recipes that a block of commands names after `drmas init`, and that the new project does not have. */
function missingFiles(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].map(([, code = '']) => code);
  return blocks.flatMap((code) => {
    const [, after] = /\bdrmas init (?!.*--(?:example|from))([\s\S]*)/.exec(code) ?? [];
    const named = [...(after ?? '').matchAll(/\bdrmas \w+ ([\w-]+\.m?ts)\b/g)].map(([, file = '']) => file);
    return named.filter((file) => file !== 'team.ts').map((file) => `drmas init writes team.ts and no ${file}`);
  });
}

/** The lines of the blocks of code without their comments, and the code within lines, which may go over two. */
function codeOf(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```\w*\n([\s\S]*?)^ *```$/gm)].flatMap(([, code = '']) => code.split('\n'));
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '');
  const spans = [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replaceAll(/\s+/g, ' '));
  return [...blocks.map((line) => line.replace(/(^|\s)# .*$/, '')), ...spans];
}

/** Scripts of npm, and checks of `npm run verify`, that do not exist. */
function unknownScripts(text: string, scripts: ReadonlySet<string>): string[] {
  const named = [...text.matchAll(/\bnpm run (?:--silent )?([a-z][\w:-]*)(?: -- ([a-z][\w-]*))?/g)];
  return named.flatMap(([, script = '', check]) => {
    if (!scripts.has(script)) return [`there is no npm run ${script}`];
    const isUnknown = script === 'verify' && check !== undefined && checks[check] === undefined;
    return isUnknown ? [`npm run verify has no check '${check}'`] : [];
  });
}

/** The errors of a line that calls drmas, at its beginning or behind npx or another command. */
function wrongUses(line: string): string[] {
  return [...line.matchAll(/(?:^|npx |&& |; )drmas ([a-z][a-z-]*)((?: (?!&&|\||;)\S+)*)/g)].flatMap(
    ([, name = '', rest = '']) => {
      const command = [...commands, ...shortNames].find((each) => each.name === name);
      if (command === undefined) return [`there is no command drmas ${name}`];
      const words = rest.trim().split(/\s+/);
      const known = flagsOf(command, words);
      return words
        .flatMap((word) => /^--[a-z][a-z-]*/.exec(word) ?? [])
        .filter((flag) => !known.has(flag))
        .map((flag) => `drmas ${name} has no ${flag}`);
    },
  );
}

/** The flags of a command and of the subcommands that the words name, without flags of the previous version. */
function flagsOf(command: Command, [first, ...others]: readonly string[]): ReadonlySet<string> {
  const below = command.subcommands?.find(({ name }) => name === first);
  const flags = Object.entries(command.flags).map(([key]) => flagName(key));
  return new Set(['--help', ...flags, ...(below === undefined ? [] : flagsOf(below, others))]);
}
