/** The commands that pages tell readers to type: scripts of npm and commands of drmas, with their flags. */
import { join } from 'node:path';
import { commands } from '../../src/cli/commands/index.js';
import { type Command, flagName } from '../../src/cli/define-command.js';
import { newManifest } from '../../src/cli/init/project-manifest.js';
import { markdownPages, readPage, root } from './pages.js';

/** Pages that tell what was so once, and whose commands need not work any more. */
const HISTORY = /^(CHANGELOG\.md|docs\/lab-notes\.md|docs\/decisions\/)/;

/** The commands of all pages that do not exist, one line each. */
export function unknownCommands(): string[] {
  const { scripts } = JSON.parse(readPage('package.json')) as { readonly scripts: object };
  const names = new Set([...Object.keys(scripts), ...Object.keys(newManifest(join(root, 'templates')).scripts)]);
  return markdownPages()
    .filter((page) => !HISTORY.test(page))
    .flatMap((page) => commandFaults(page, readPage(page), names));
}

/** The commands of a page that do not exist, one line each. */
export const commandFaults = (page: string, text: string, scripts: ReadonlySet<string>): string[] =>
  codeOf(text)
    .flatMap((line) => [...unknownScripts(line, scripts), ...wrongUses(line)])
    .map((fault) => `${page}: ${fault}`);

/** The lines of the blocks of code without their comments, and the code within lines, which may go over two. */
function codeOf(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```\w*\n([\s\S]*?)^ *```$/gm)].flatMap(([, code = '']) => code.split('\n'));
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '');
  const spans = [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replaceAll(/\s+/g, ' '));
  return [...blocks.map((line) => line.replace(/(^|\s)# .*$/, '')), ...spans];
}

function unknownScripts(line: string, scripts: ReadonlySet<string>): string[] {
  const named = [...line.matchAll(/\bnpm run (?:--silent )?([a-z][\w:-]*)/g)].map(([, name = '']) => name);
  return named.filter((name) => !scripts.has(name)).map((name) => `there is no npm run ${name}`);
}

/** What is wrong where a line calls drmas: first in it, or behind npx or another command. */
function wrongUses(line: string): string[] {
  return [...line.matchAll(/(?:^|npx |&& |; )drmas ([a-z]+)((?: (?!&&|\||;)\S+)*)/g)].flatMap(
    ([, name = '', rest = '']) => {
      const command = commands.find((each) => each.name === name);
      if (command === undefined) return [`there is no command drmas ${name}`];
      const words = rest.trim().split(/\s+/);
      const known = flagsOf(command, words[0]);
      return words
        .flatMap((word) => /^--[a-z][a-z-]*/.exec(word) ?? [])
        .filter((flag) => !known.has(flag))
        .map((flag) => `drmas ${name} has no ${flag}`);
    },
  );
}

/** The flags of a command, and those of its subcommand of this name. */
function flagsOf(command: Command, subcommand: string | undefined): ReadonlySet<string> {
  const below = command.subcommands?.find(({ name }) => name === subcommand);
  return new Set([
    '--help',
    ...[command, ...(below === undefined ? [] : [below])].flatMap((each) => Object.keys(each.flags).map(flagName)),
  ]);
}
